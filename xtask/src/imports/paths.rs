//! Paths that a file names: in `use` declarations and written out in code (pure).

use super::tokens::{Kind, Token};

/// A path, as it is written: `crate::repo::Repo`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// Never empty.
    pub segments: Vec<String>,
    pub line: usize,
    /// In how many inline modules it stands.
    pub depth: usize,
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

/// What a file says of modules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    pub declarations: Vec<Declaration>,
    pub imports: Vec<Import>,
    /// Paths written out in code, of two segments or more.
    pub paths: Vec<Path>,
    /// Names of the items, whatever block they stand in.
    pub items: Vec<String>,
}

impl Contents {
    /// Every path that the file names.
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

/// Reads what the tokens of a file say of modules.
pub fn contents(tokens: &[Token]) -> Contents {
    let mut reader = Reader {
        tokens,
        at: 0,
        braces: 0,
        inline: Vec::new(),
        path_attribute: None,
        contents: Contents::default(),
    };
    while reader.at < tokens.len() {
        reader.step();
    }
    reader.contents
}

struct Reader<'a> {
    tokens: &'a [Token],
    at: usize,
    braces: usize,
    /// Inline modules around, each with the number of braces open outside it.
    inline: Vec<(String, usize)>,
    path_attribute: Option<String>,
    contents: Contents,
}

impl Reader<'_> {
    fn peek(&self, ahead: usize, text: &str) -> bool {
        let token = self.tokens.get(self.at + ahead);
        token.is_some_and(|token| token.is(text))
    }

    fn word(&self, ahead: usize) -> Option<&str> {
        let token = self.tokens.get(self.at + ahead)?;
        (token.kind == Kind::Word).then_some(token.text.as_str())
    }

    fn step(&mut self) {
        let token = &self.tokens[self.at];
        match token.text.as_str() {
            _ if token.kind == Kind::Text => self.at += 1,
            "{" => {
                self.braces += 1;
                self.at += 1;
            }
            "}" => {
                self.braces = self.braces.saturating_sub(1);
                if self
                    .inline
                    .last()
                    .is_some_and(|(_, outside)| *outside == self.braces)
                {
                    self.inline.pop();
                }
                self.at += 1;
            }
            "#" if self.peek(1, "[") && self.peek(2, "path") && self.peek(3, "=") => {
                self.path_attribute = self.tokens.get(self.at + 4).map(|text| text.text.clone());
                self.at += 5;
            }
            "mod" => self.module(),
            "use" => {
                self.at += 1;
                self.tree(&mut Vec::new());
            }
            _ if token.kind == Kind::Word => self.path_or_item(),
            _ => self.at += 1,
        }
    }

    fn module(&mut self) {
        let line = self.tokens[self.at].line;
        let Some(name) = self.word(1).map(str::to_owned) else {
            self.at += 1;
            return;
        };
        if self.peek(2, "{") {
            self.inline.push((name, self.braces));
        } else if self.peek(2, ";") {
            let around = self.inline.iter().map(|(name, _)| name.clone());
            self.contents.declarations.push(Declaration {
                names: around.chain([name]).collect(),
                at: self.path_attribute.take(),
                line,
            });
        }
        self.at += 2;
    }

    /// One branch of a `use` declaration, after `prefix`.
    fn tree(&mut self, prefix: &mut Vec<String>) {
        let length = prefix.len();
        let line = self.tokens.get(self.at).map_or(0, |token| token.line);
        loop {
            if self.peek(0, "{") {
                self.at += 1;
                while self.at < self.tokens.len() && !self.peek(0, "}") {
                    self.tree(prefix);
                    self.at += usize::from(self.peek(0, ","));
                }
                self.at += 1;
                break;
            }
            if self.peek(0, "*") {
                self.at += 1;
                self.import(prefix, line, None);
                break;
            }
            if let Some(word) = self.word(0) {
                prefix.push(word.to_owned());
                self.at += 1;
            }
            if self.peek(0, "::") {
                self.at += 1;
                continue;
            }
            let mut name = prefix.last().cloned();
            if name.as_deref() == Some("self") && prefix.len() > 1 {
                prefix.pop();
                name = prefix.last().cloned();
            }
            if self.peek(0, "as") {
                name = self.word(1).map(str::to_owned);
                self.at += 2;
            }
            self.import(prefix, line, name.as_deref());
            // Whatever else stands here is no `use` declaration, as in `impl Trait + use<'a>`.
            let is_end = [",", "}", ";"].iter().any(|end| self.peek(0, end));
            self.at += usize::from(!is_end);
            break;
        }
        prefix.truncate(length);
    }

    fn import(&mut self, segments: &[String], line: usize, name: Option<&str>) {
        if segments.is_empty() {
            return;
        }
        let path = Path {
            segments: segments.to_vec(),
            line,
            depth: self.inline.len(),
        };
        let name = name.map(str::to_owned);
        self.contents.imports.push(Import { path, name });
    }

    fn path_or_item(&mut self) {
        let token = &self.tokens[self.at];
        if ITEMS.contains(&token.text.as_str()) {
            let ahead = 1 + usize::from(self.peek(1, "!"));
            let name = self.word(ahead).map(str::to_owned);
            self.contents.items.extend(name);
        }
        let mut segments = vec![token.text.clone()];
        let line = token.line;
        self.at += 1;
        while self.peek(0, "::") {
            let Some(word) = self.word(1).map(str::to_owned) else {
                break;
            };
            segments.push(word);
            self.at += 2;
        }
        if segments.len() > 1 || self.peek(0, "::") {
            self.contents.paths.push(Path {
                segments,
                line,
                depth: self.inline.len(),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tokens::tokens;
    use super::*;

    fn read(source: &str) -> Contents {
        contents(&tokens(source))
    }

    #[test]
    fn a_use_declaration_brings_in_each_leaf_of_its_tree() {
        let found = read("pub use crate::{a::{self, B as C}, d::*}; use e; use ::f::g;");
        let imports: Vec<_> = found
            .imports
            .into_iter()
            .map(|import| (import.path.segments.join("::"), import.name))
            .collect();
        let named = |path: &str, name: &str| (path.to_owned(), Some(name.to_owned()));
        let expected = [
            named("crate::a", "a"),
            named("crate::a::B", "C"),
            ("crate::d".to_owned(), None),
            named("e", "e"),
            named("f::g", "g"),
        ];
        assert_eq!(imports, expected);
    }

    #[test]
    fn written_paths_are_read_with_the_modules_around_them() {
        let found =
            read("fn f() { a::b(c::<D>::e, g.h()) } mod i { fn j() { super::k() } } super::l()");
        let paths: Vec<_> = found
            .paths
            .into_iter()
            .map(|path| (path.segments.join("::"), path.depth))
            .collect();
        let expected = [("a::b", 0), ("c", 0), ("super::k", 1), ("super::l", 0)];
        assert_eq!(
            paths,
            expected.map(|(path, depth)| (path.to_owned(), depth))
        );
        assert_eq!(found.items, ["f", "j"]);
    }

    #[test]
    fn modules_in_other_files_are_declared_with_what_leads_there() {
        let found = read("mod a; mod b { pub mod c; } #[path = \"../d.rs\"]\nmod e;");
        let declarations: Vec<_> = found
            .declarations
            .iter()
            .map(|one| (one.names.join("::"), one.at.as_deref(), one.line))
            .collect();
        let expected = [("a", None, 1), ("b::c", None, 1), ("e", Some("../d.rs"), 2)];
        assert_eq!(
            declarations,
            expected.map(|(name, at, line)| (name.to_owned(), at, line))
        );
    }
}
