//! Contents of one source file: modules, imports, items, paths and words, test code apart (pure).

use std::mem;

use proc_macro2::{Delimiter, Group, LexError, Literal, TokenStream, TokenTree};

/// A path, as it is written: `crate::repo::Repo`; from an inline module, as from the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// Never empty.
    pub segments: Vec<String>,
    pub line: usize,
}

/// A name that a `use` declaration brings in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    pub path: Path,
    /// The name in this file; `None` for `*`.
    pub name: Option<String>,
}

/// A `mod name;`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declaration {
    /// Names of the inline modules around it, then its own.
    pub names: Vec<String>,
    /// Of the `#[path]` in front of it.
    pub at: Option<String>,
    pub line: usize,
}

/// What code names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    pub declarations: Vec<Declaration>,
    pub imports: Vec<Import>,
    /// Paths written out in code, of two segments or more.
    pub paths: Vec<Path>,
    /// Names of the items, whatever block they stand in.
    pub items: Vec<String>,
    /// Identifiers and keywords, with their lines.
    pub words: Vec<(String, usize)>,
    /// What stands between the quotes of strings.
    pub texts: Vec<String>,
}

impl Contents {
    /// Every path that the code names.
    pub fn named(&self) -> impl Iterator<Item = &Path> {
        let imports = self.imports.iter().map(|import| &import.path);
        imports.chain(&self.paths)
    }
}

/// Keywords that a new item's name follows.
const ITEMS: [&str; 9] = [
    "struct",
    "enum",
    "fn",
    "trait",
    "type",
    "const",
    "static",
    "union",
    "macro_rules",
];

/// One file.
#[derive(Debug, Default)]
pub struct Source {
    /// What is compiled outside tests.
    pub code: Contents,
    /// What is compiled for tests alone.
    pub tests: Contents,
}

impl Source {
    /// Reads a file, all of which is test code if `is_test`.
    pub fn read(text: &str, is_test: bool) -> Result<Self, LexError> {
        let mut reader = Reader {
            is_test,
            ..Reader::default()
        };
        reader.stream(text.parse()?);
        Ok(reader.source)
    }
}

#[derive(Default)]
struct Reader {
    source: Source,
    is_test: bool,
    /// Inline modules around.
    inline: Vec<String>,
    path_attribute: Option<String>,
}

impl Reader {
    fn contents(&mut self) -> &mut Contents {
        if self.is_test {
            &mut self.source.tests
        } else {
            &mut self.source.code
        }
    }

    fn stream(&mut self, stream: TokenStream) {
        self.tokens(&stream.into_iter().collect::<Vec<_>>());
    }

    fn tokens(&mut self, tokens: &[TokenTree]) {
        let mut at = 0;
        while let Some(rest) = tokens.get(at..).filter(|rest| !rest.is_empty()) {
            at += self.step(rest);
        }
    }

    /// Reads what stands first, and returns how many tokens that took.
    fn step(&mut self, tokens: &[TokenTree]) -> usize {
        match tokens {
            [TokenTree::Punct(mark), TokenTree::Group(group), rest @ ..]
                if mark.as_char() == '#' =>
            {
                2 + self.attribute(group, rest)
            }
            [
                TokenTree::Punct(mark),
                TokenTree::Punct(inner),
                TokenTree::Group(group),
                ..,
            ] if mark.as_char() == '#' && inner.as_char() == '!' => 3 + self.attribute(group, &[]),
            [TokenTree::Group(group), ..] => {
                self.stream(group.stream());
                1
            }
            [TokenTree::Literal(literal), ..] => {
                self.contents().texts.extend(text_of(literal));
                1
            }
            [TokenTree::Ident(word), rest @ ..] if word == "use" && !is_mark(rest, '<') => {
                self.word(&tokens[0]);
                let end = rest.iter().position(|token| is(token, ';'));
                let declaration = &rest[..end.unwrap_or(rest.len())];
                self.branch(declaration, &[]);
                1 + declaration.len()
            }
            [TokenTree::Ident(word), TokenTree::Ident(name), rest @ ..] if word == "mod" => {
                2 + self.module(name.to_string(), name.span().start().line, rest)
            }
            [TokenTree::Ident(_), ..] => self.path_or_item(tokens),
            // A lifetime.
            [mark, TokenTree::Ident(_), ..] if is(mark, '\'') => 2,
            _ => 1,
        }
    }

    /// Returns how many tokens of the item belong to it, which are read already.
    fn attribute(&mut self, group: &Group, item: &[TokenTree]) -> usize {
        let tokens: Vec<_> = group.stream().into_iter().collect();
        let words: Vec<_> = tokens.iter().map(ToString::to_string).collect();
        match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            // A comment.
            ["doc", ..] => 0,
            ["path", "=", _] => {
                self.path_attribute = match &tokens[2] {
                    TokenTree::Literal(text) => text_of(text),
                    _ => None,
                };
                0
            }
            ["cfg", condition] if is_of_tests(condition) => {
                let outside = mem::replace(&mut self.is_test, true);
                let length = item_length(item);
                self.tokens(&item[..length]);
                self.is_test = outside;
                length
            }
            _ => {
                self.tokens(&tokens);
                0
            }
        }
    }

    fn module(&mut self, name: String, line: usize, rest: &[TokenTree]) -> usize {
        match rest {
            [TokenTree::Group(body), ..] if body.delimiter() == Delimiter::Brace => {
                self.inline.push(name);
                self.stream(body.stream());
                self.inline.pop();
                1
            }
            _ => {
                let declaration = Declaration {
                    names: self.inline.iter().cloned().chain([name]).collect(),
                    at: self.path_attribute.take(),
                    line,
                };
                self.contents().declarations.push(declaration);
                0
            }
        }
    }

    /// One branch of a `use` declaration, after `prefix`.
    fn branch(&mut self, tokens: &[TokenTree], prefix: &[String]) {
        let (mut segments, mut name) = (prefix.to_vec(), None);
        let line = tokens.first().map_or(0, |one| one.span().start().line);
        let mut rest = tokens.iter();
        while let Some(token) = rest.next() {
            match token {
                TokenTree::Ident(word) if word == "as" => {
                    name = rest.next().map(ToString::to_string);
                }
                TokenTree::Ident(_) => {
                    self.word(token);
                    segments.push(token.to_string());
                }
                TokenTree::Group(group) => {
                    let inner: Vec<_> = group.stream().into_iter().collect();
                    let branches = inner.split(|token| is(token, ','));
                    for branch in branches.filter(|branch| !branch.is_empty()) {
                        self.branch(branch, &segments);
                    }
                    return;
                }
                _ if is(token, '*') => return self.import(segments, line, None),
                _ => {}
            }
        }
        if segments.len() > 1 && segments.last().is_some_and(|last| last == "self") {
            segments.pop();
        }
        let name = name.or_else(|| segments.last().cloned());
        self.import(segments, line, name);
    }

    fn import(&mut self, segments: Vec<String>, line: usize, name: Option<String>) {
        let path = self.path(segments, line);
        self.contents().imports.push(Import { path, name });
    }

    /// As seen from the file: each inline module around takes a `super` off.
    fn path(&self, mut segments: Vec<String>, line: usize) -> Path {
        let above = segments.iter().take_while(|one| *one == "super").count();
        let inside = above.min(self.inline.len());
        if inside > 0 {
            segments.splice(..inside, ["self".to_owned()]);
        }
        Path { segments, line }
    }

    fn path_or_item(&mut self, tokens: &[TokenTree]) -> usize {
        let first = tokens[0].to_string();
        if ITEMS.contains(&first.as_str()) {
            let ahead = 1 + usize::from(is_mark(&tokens[1..], '!'));
            let name = tokens.get(ahead).map(ToString::to_string);
            self.contents().items.extend(name);
        }
        let mut segments = vec![first];
        self.word(&tokens[0]);
        let mut length = 1;
        while let [_, _, next @ TokenTree::Ident(_), ..] = &tokens[length..]
            && is_mark(&tokens[length..], ':')
            && is_mark(&tokens[length + 1..], ':')
        {
            self.word(next);
            segments.push(next.to_string());
            length += 3;
        }
        let has_more = is_mark(&tokens[length..], ':')
            && tokens.get(length + 1).is_some_and(|next| is(next, ':'));
        if segments.len() > 1 || has_more {
            let path = self.path(segments, tokens[0].span().start().line);
            self.contents().paths.push(path);
        }
        length
    }

    fn word(&mut self, word: &TokenTree) {
        let (text, line) = (word.to_string(), word.span().start().line);
        self.contents().words.push((text, line));
    }
}

fn is(token: &TokenTree, mark: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == mark)
}

fn is_mark(tokens: &[TokenTree], mark: char) -> bool {
    tokens.first().is_some_and(|token| is(token, mark))
}

/// The condition of a `cfg`, brackets included, under which code is compiled for tests alone.
fn is_of_tests(condition: &str) -> bool {
    condition == "(test)"
        || condition.starts_with("(all (test")
        || condition.starts_with("(all(test")
}

/// The text of a string, escapes as they are written.
fn text_of(literal: &Literal) -> Option<String> {
    let text = literal.to_string();
    let start = text.find('"')? + 1;
    let end = text.rfind('"')?;
    text.get(start..end).map(str::to_owned)
}

/// How many tokens belong to the item that begins here, its attributes included: up to a `;` or a block.
fn item_length(tokens: &[TokenTree]) -> usize {
    let is_end = |(at, token): (usize, &TokenTree)| match token {
        TokenTree::Group(group) => {
            // As in `use a::{b};`, where the item ends after it.
            group.delimiter() == Delimiter::Brace && !is_mark(&tokens[at + 1..], ';')
        }
        _ => is(token, ';'),
    };
    let end = tokens.iter().enumerate().position(is_end);
    end.map_or(tokens.len(), |end| end + 1)
}

#[cfg(test)]
mod tests;
