//! Archive: takes files out of a ZIP archive as gzip, without unpacking them (pure).
//!
//! Both formats hold the same compressed bytes (DEFLATE), with a checksum and the length of the content. Browsers unpack
//! gzip themselves, so the server neither unpacks what it serves nor packs it again.

/// First bytes of an entry in the list at the end of an archive.
const LISTED: [u8; 4] = *b"PK\x01\x02";

/// First bytes of an entry before its content.
const LOCAL: [u8; 4] = *b"PK\x03\x04";

/// First bytes of the record that says where the list is. Nothing but the archive's comment follows it.
const END: [u8; 4] = *b"PK\x05\x06";

/// Bytes of that record without the comment.
const END_LEN: usize = 22;

/// Longest comment: its length is written in two bytes.
const MAX_COMMENT: usize = 65_535;

/// The compression that gzip knows.
const DEFLATE: u16 = 8;

/// Head of a gzip file: DEFLATE, no name, no time, made on no particular system.
const GZIP: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];

/// An archive, and where its list of entries begins.
pub struct Archive<'a> {
    bytes: &'a [u8],
    list: usize,
}

impl<'a> Archive<'a> {
    /// The archive in these bytes; `None` when they end like none.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        let last = bytes.len().checked_sub(END_LEN)?;
        // The last record whose comment is all that follows it.
        let mut ends = (last.saturating_sub(MAX_COMMENT)..=last).rev();
        let end = ends.find(|&end| {
            let comment = end.checked_add(20).and_then(|offset| short(bytes, offset));
            at(bytes, end) == Some(END) && comment == last.checked_sub(end)
        })?;
        let list = usize::try_from(number(bytes, end.checked_add(16)?)?).ok()?;
        Some(Self { bytes, list })
    }

    /// The entry whose path ends with `name`, as a gzip file; `None` when there is none that is compressed by DEFLATE.
    #[must_use]
    pub fn gzip(&self, name: &str) -> Option<Vec<u8>> {
        let mut entry = self.list;
        while at(self.bytes, entry)? == LISTED {
            let field = |offset: usize| short(self.bytes, entry.checked_add(offset)?);
            let (name_len, extra_len, comment_len) = (field(28)?, field(30)?, field(32)?);
            let name_at = entry.checked_add(46)?;
            let path = self.bytes.get(name_at..name_at.checked_add(name_len)?)?;
            if path.ends_with(name.as_bytes()) {
                return self.entry(entry);
            }
            entry = name_at
                .checked_add(name_len)?
                .checked_add(extra_len)?
                .checked_add(comment_len)?;
        }
        None
    }

    /// The entry that is listed here, as a gzip file.
    fn entry(&self, listed: usize) -> Option<Vec<u8>> {
        let bytes = self.bytes;
        if short(bytes, listed.checked_add(10)?)? != usize::from(DEFLATE) {
            return None;
        }
        let sum = at(bytes, listed.checked_add(16)?)?;
        let packed = usize::try_from(number(bytes, listed.checked_add(20)?)?).ok()?;
        let unpacked = at(bytes, listed.checked_add(24)?)?;
        let local = usize::try_from(number(bytes, listed.checked_add(42)?)?).ok()?;
        if at(bytes, local)? != LOCAL {
            return None;
        }
        let name_len = short(bytes, local.checked_add(26)?)?;
        let extra_len = short(bytes, local.checked_add(28)?)?;
        let content = local
            .checked_add(30)?
            .checked_add(name_len)?
            .checked_add(extra_len)?;
        let content = bytes.get(content..content.checked_add(packed)?)?;
        Some([&GZIP[..], content, &sum, &unpacked].concat())
    }
}

/// Four bytes at an offset.
fn at(bytes: &[u8], offset: usize) -> Option<[u8; 4]> {
    bytes.get(offset..)?.first_chunk().copied()
}

fn number(bytes: &[u8], offset: usize) -> Option<u32> {
    at(bytes, offset).map(u32::from_le_bytes)
}

fn short(bytes: &[u8], offset: usize) -> Option<usize> {
    let two = bytes.get(offset..)?.first_chunk().copied();
    two.map(|two| usize::from(u16::from_le_bytes(two)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// "hello" in DEFLATE without compression, in an archive under `page/a.txt`.
    fn archive() -> Vec<u8> {
        let content = [&[1, 5, 0, 0xfa, 0xff][..], b"hello"].concat();
        let sum = 0x3610_a686_u32.to_le_bytes();
        let sizes = [10_u32.to_le_bytes(), 5_u32.to_le_bytes()].concat();
        let lens = [10_u16.to_le_bytes(), 0_u16.to_le_bytes()].concat();
        let shared = [&[20, 0, 0, 0, 8, 0, 0, 0, 0, 0][..], &sum, &sizes, &lens].concat();
        let local = [&LOCAL[..], &shared, b"page/a.txt", &content].concat();
        let listed = [&LISTED[..], &[20, 0], &shared, &[0; 14], b"page/a.txt"].concat();
        let place = u32::try_from(local.len()).expect("small").to_le_bytes();
        let end = [&END[..], &[0; 12], &place, &[0; 2]].concat();
        [local, listed, end].concat()
    }

    #[test]
    fn takes_an_entry_out_as_gzip() {
        let bytes = archive();
        let archive = Archive::new(&bytes).expect("an archive");
        let gzip = archive.gzip("/a.txt").expect("an entry");
        let expected = [
            &GZIP[..],
            &[1, 5, 0, 0xfa, 0xff],
            b"hello",
            &[0x86, 0xa6, 0x10, 0x36, 5, 0, 0, 0],
        ];
        assert_eq!(gzip, expected.concat());
        assert!(archive.gzip("/b.txt").is_none());
        // With a comment, whose length stands before it.
        let mut commented = bytes.clone();
        let last = commented.len() - 2;
        commented[last] = 3;
        commented.extend(b"abc");
        let archive = Archive::new(&commented).expect("an archive");
        assert_eq!(archive.gzip("/a.txt"), Some(gzip));
    }

    #[test]
    fn refuses_what_is_cut_or_no_archive() {
        let bytes = archive();
        for len in 0..bytes.len() {
            assert!(Archive::new(&bytes[..len]).is_none(), "{len}");
        }
        let mut stored = bytes;
        for place in 0..stored.len() {
            let kept = std::mem::replace(&mut stored[place], 0xff);
            // Whatever a damaged byte makes of it, reading ends.
            let _ = Archive::new(&stored).and_then(|archive| archive.gzip("/a.txt"));
            stored[place] = kept;
        }
    }
}
