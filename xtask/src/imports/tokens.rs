//! Tokens of Rust source with their lines, without comments; code apart from test code (pure).

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An identifier, a keyword or a number.
    Word,
    /// What stands between the quotes of a string.
    Text,
    /// `::` or one character of punctuation.
    Mark,
}

/// One token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    pub kind: Kind,
    pub text: String,
    /// From 1.
    pub line: usize,
}

impl Token {
    /// Whether this is the given word or mark; the text of a string is neither.
    pub fn is(&self, text: &str) -> bool {
        self.kind != Kind::Text && self.text == text
    }
}

/// Splits Rust source into tokens. Comments, character literals and lifetimes are left out.
pub fn tokens(source: &str) -> Vec<Token> {
    let mut reader = Reader {
        rest: source,
        line: 1,
        tokens: Vec::new(),
    };
    while !reader.rest.is_empty() {
        reader.step();
    }
    reader.tokens
}

struct Reader<'a> {
    rest: &'a str,
    line: usize,
    tokens: Vec<Token>,
}

impl<'a> Reader<'a> {
    fn step(&mut self) {
        let rest = self.rest;
        let first = rest.chars().next().unwrap_or_default();
        if rest.starts_with("//") {
            self.skip(rest.find('\n').unwrap_or(rest.len()));
        } else if rest.starts_with("/*") {
            self.skip(block_comment(rest));
        } else if let Some((start, end, length)) = string(rest) {
            self.push(Kind::Text, &rest[start..end]);
            self.skip(length);
        } else if is_word(first) {
            let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            self.push(Kind::Word, &rest[..length]);
            self.skip(length);
        } else if first == '\'' {
            self.skip(quote(rest));
        } else if rest.starts_with("::") {
            self.push(Kind::Mark, "::");
            self.skip(2);
        } else {
            let length = first.len_utf8();
            if !first.is_whitespace() {
                self.push(Kind::Mark, &rest[..length]);
            }
            self.skip(length);
        }
    }

    fn push(&mut self, kind: Kind, text: &str) {
        self.tokens.push(Token {
            kind,
            text: text.to_owned(),
            line: self.line,
        });
    }

    fn skip(&mut self, length: usize) {
        let (skipped, rest) = self.rest.split_at(length);
        self.line += skipped.matches('\n').count();
        self.rest = rest;
    }
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// Length of the block comment at the start; they nest.
fn block_comment(source: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < source.len() {
        if source[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if source[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += source[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    source.len()
}

/// Where the text of the string at the start begins and ends, and the length of the whole literal.
fn string(source: &str) -> Option<(usize, usize, usize)> {
    let prefix = source.len() - source.trim_start_matches(['b', 'c', 'r']).len();
    let is_raw = source[..prefix.min(2)].contains('r');
    let hashes = if is_raw {
        source.len() - prefix - source[prefix..].trim_start_matches('#').len()
    } else {
        0
    };
    let start = prefix + hashes + 1;
    if prefix > 2 || !source[prefix + hashes..].starts_with('"') {
        return None;
    }
    if is_raw {
        let close = format!("\"{}", "#".repeat(hashes));
        let end = start + source[start..].find(&close)?;
        return Some((start, end, end + close.len()));
    }
    let mut is_escaped = false;
    for (at, character) in source[start..].char_indices() {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return Some((start, start + at, start + at + 1)),
            _ => {}
        }
    }
    None
}

/// Length of the character literal or lifetime at the start.
fn quote(source: &str) -> usize {
    let mut characters = source.char_indices().skip(1);
    let Some((_, first)) = characters.next() else {
        return 1;
    };
    if first == '\\' {
        // The escaped character may itself be a quote.
        return source[3..].find('\'').map_or(source.len(), |at| at + 4);
    }
    match characters.next() {
        Some((at, '\'')) => at + 1,
        _ => {
            1 + source[1..]
                .find(|c| !is_word(c))
                .unwrap_or(source.len() - 1)
        }
    }
}

/// Splits the tokens of a file into the code and what is compiled for tests alone.
pub fn split_tests(all: Vec<Token>) -> (Vec<Token>, Vec<Token>) {
    let (mut code, mut tests) = (Vec::new(), Vec::new());
    let mut rest = all.into_iter();
    let mut held: Vec<Token> = Vec::new();
    while let Some(token) = rest.next() {
        held.push(token);
        let is_test = opens(&held, &["#", "[", "cfg", "(", "test", ")"])
            || opens(&held, &["#", "[", "cfg", "(", "all", "(", "test"]);
        if is_test {
            let length = item_length(rest.clone());
            tests.append(&mut held);
            tests.extend(rest.by_ref().take(length));
        } else if !begins_test_attribute(&held) {
            code.append(&mut held);
        }
    }
    code.append(&mut held);
    (code, tests)
}

fn opens(held: &[Token], words: &[&str]) -> bool {
    held.len() == words.len() && held.iter().zip(words).all(|(token, word)| token.is(word))
}

/// Whether what is held may still become an attribute that opens test code.
fn begins_test_attribute(held: &[Token]) -> bool {
    let long = ["#", "[", "cfg", "(", "all", "(", "test"];
    let short = ["#", "[", "cfg", "(", "test", ")"];
    let begins = |words: &[&str]| {
        held.len() <= words.len() && held.iter().zip(words).all(|(token, word)| token.is(word))
    };
    begins(&long) || begins(&short)
}

/// How many tokens belong to the item whose attribute was just read: up to a `;` or a closing `}` outside all brackets.
fn item_length(rest: impl Iterator<Item = Token>) -> usize {
    // The attribute's own brackets, of which `[` at least is open.
    let mut is_in_attribute = true;
    let mut depth = 0_usize;
    let mut length = 0;
    let mut rest = rest.peekable();
    while let Some(token) = rest.next() {
        length += 1;
        if is_in_attribute {
            is_in_attribute = !token.is("]");
            continue;
        }
        match token.text.as_str() {
            _ if token.kind != Kind::Mark => {}
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" if depth == 0 => return length - 1,
            // As in `use a::{b};`, where the item ends after it.
            "}" if depth == 1 && rest.peek().is_some_and(|next| next.is(";")) => return length + 1,
            "}" if depth == 1 => return length,
            "}" | ")" | "]" => depth -= 1,
            ";" if depth == 0 => return length,
            _ => {}
        }
    }
    length
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(source: &str) -> Vec<String> {
        tokens(source).into_iter().map(|token| token.text).collect()
    }

    #[test]
    fn comments_characters_and_lifetimes_are_left_out() {
        let source = "a /* b /* c */ d */ e // f\n 'g' '\\'' '\\u{1}' h::<'i>(&'static j)";
        let expected = ["a", "e", "h", "::", "<", ">", "(", "&", "j", ")"];
        assert_eq!(words(source), expected);
    }

    #[test]
    fn strings_are_one_token_and_lines_are_counted() {
        let source = "let a = \"use x; \\\" //\";\nr#\"b\"c\"# br\"d\\\" rust r#type";
        let texts: Vec<_> = tokens(source)
            .into_iter()
            .filter(|token| token.kind == Kind::Text)
            .map(|token| (token.text, token.line))
            .collect();
        let expected = [("use x; \\\" //", 1), ("b\"c", 2), ("d\\", 2)];
        assert_eq!(texts, expected.map(|(text, line)| (text.to_owned(), line)));
        assert_eq!(words("rust cr b c")[..], ["rust", "cr", "b", "c"]);
    }

    #[test]
    fn test_code_is_split_off_item_by_item() {
        let source = "use a; #[cfg(test)] mod tests { fn b() { c[0]; } } #[cfg(unix)] fn d() {}\n\
                      #[cfg(test)] #[expect(x)] use e::{f, g}; #[cfg(all(test, unix))] fn h<A, B>(i: [u8; 2]) {} j";
        let (code, tests) = split_tests(tokens(source));
        let text = |tokens: Vec<Token>| {
            let texts: Vec<_> = tokens.into_iter().map(|token| token.text).collect();
            texts.join(" ")
        };
        assert_eq!(text(code), "use a ; # [ cfg ( unix ) ] fn d ( ) { } j");
        let tests = text(tests);
        for part in ["c [ 0 ] ; } }", "use e :: { f , g } ;", "2 ] ) { }"] {
            assert!(tests.contains(part), "{tests}");
        }
    }
}
