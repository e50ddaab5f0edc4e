//! Bank ids: two banks of a slot written in turns, from a server that numbers them and one that does not.

use super::*;

/// Updates of slot 102 and what they are in a word or two, each with the number of its bank.
async fn until_confirmed(stream: &mut Stream) -> Vec<(Option<u64>, String)> {
    let mut said = Vec::new();
    loop {
        let update = soon(stream.next()).await.expect("an update");
        said.push((update.bank_id, brief(&update)));
        if said.last().is_some_and(|(_, said)| said == "102 confirmed") {
            said.retain(|(_, said)| said.starts_with("102"));
            return said;
        }
    }
}

fn content(byte: u8) -> Content {
    Content::Broken {
        owner: program(),
        data: Bytes::copy_from_slice(&[byte]),
    }
}

#[tokio::test]
async fn banks_of_a_slot_are_numbered_where_that_is_set_and_all_are_replayed() {
    for bank_ids in [true, false] {
        let served = Served::start().await;
        let configured = |settings: &mut ServerSettings| settings.bank_ids = bank_ids;
        served.server.configure(configured);
        let mut live = served.listening(request(1)).await;
        let chain = &served.chain;
        served.status(101, SlotStatus::Processed);
        let parent = chain.lock().tree.current(101).expect("it has a block");
        let banks = [chain.open(102, parent), chain.open(102, parent)];
        for byte in [1, 2] {
            for bank in banks {
                chain.write(bank, address("a"), content(byte), None);
            }
        }
        for bank in banks {
            chain.freeze(bank);
            chain.seal(bank);
        }
        chain.confirm(banks[0]);

        let number = |bank: u64| bank_ids.then_some(bank);
        let said = |bank: u64, said: &str| (number(bank), format!("102 {said}"));
        let in_turns = |what: &str| [said(2, what), said(3, what)];
        let ends = [2, 3].map(|bank| [said(bank, "block"), said(bank, "processed")]);
        let mut expected: Vec<_> = ["created", "a=1", "a=2"].map(in_turns).concat();
        expected.extend(ends.concat());
        expected.push(said(2, "confirmed"));
        assert_eq!(until_confirmed(&mut live).await, expected);

        let mut replayed = served.open(from(102)).await;
        let mut came: Vec<(Option<u64>, String)> = Vec::new();
        while came.iter().filter(|said| said.1 == "102 processed").count()
            < 1 + usize::from(bank_ids)
        {
            let update = soon(replayed.next()).await.expect("an update");
            came.push((update.bank_id, brief(&update)));
        }
        let block = |bank| {
            [
                said(bank, "a=2"),
                said(bank, "block"),
                said(bank, "processed"),
            ]
        };
        let mut expected = block(3).to_vec();
        if bank_ids {
            let first = [block(2).to_vec(), vec![said(2, "confirmed")]].concat();
            expected.splice(0..0, first);
        }
        assert_eq!(came, expected);
    }
}
