//! Sources: words, paths and texts, in code and in tests, as the rules see them.

use super::*;

fn read(source: &str) -> Source {
    Source::read(source, false).expect("tokens of Rust")
}

fn words(contents: &Contents) -> Vec<&str> {
    contents
        .words
        .iter()
        .map(|(word, _)| word.as_str())
        .collect()
}

fn paths(contents: &Contents) -> Vec<String> {
    let text = |path: &Path| path.segments.join("::");
    contents.paths.iter().map(text).collect()
}

#[test]
fn comments_characters_and_lifetimes_are_no_words() {
    let source =
        "a /* b /* c */ d */ e // f\n 'g' '\\'' '\\u{1}' h::<'i>(&'static j) /// k::l\n fn m() {}";
    assert_eq!(words(&read(source).code), ["a", "e", "h", "j", "fn", "m"]);
}

#[test]
fn strings_are_texts_and_lines_are_counted() {
    let source = "let a = \"use x; \\\" //\";\nr#\"b\"c\"# br\"d\\\" rust;\n//! \"e::f\"\nmod g;";
    let code = read(source).code;
    assert_eq!(code.texts, ["use x; \\\" //", "b\"c", "d\\"]);
    let rust = ("rust".to_owned(), 2);
    assert!(code.words.contains(&rust), "{:?}", code.words);
    assert_eq!(code.declarations[0].line, 4);
}

#[test]
fn test_code_is_apart_item_by_item() {
    let source = "use a; #[cfg(test)] mod tests { fn b() { c[0]; } } #[cfg(unix)] fn d() {}\n\
                  #[cfg(test)] #[expect(x)] use e::{f, g}; #[cfg(all(test, unix))] fn h<A, B>(i: [u8; 2]) {} j";
    let source = read(source);
    assert_eq!(
        words(&source.code),
        ["use", "a", "cfg", "unix", "fn", "d", "j"]
    );
    let imported: Vec<_> = source
        .tests
        .imports
        .iter()
        .map(|one| one.path.segments.join("::"))
        .collect();
    assert_eq!(imported, ["e::f", "e::g"]);
    assert_eq!(source.tests.items, ["b", "h"]);
    assert!(words(&source.tests).contains(&"c"));
}

#[test]
fn a_use_declaration_brings_in_each_leaf_of_its_tree() {
    let source = "use a::{self, b::C as D, e::*};\nuse ::f; pub(crate) use super::g; fn h() -> impl I + use<'_> {}";
    let imports = read(source).code.imports;
    let found: Vec<_> = imports
        .iter()
        .map(|one| {
            (
                one.path.segments.join("::"),
                one.name.as_deref(),
                one.path.line,
            )
        })
        .collect();
    let expected = [
        ("a", Some("a"), 1),
        ("a::b::C", Some("D"), 1),
        ("a::e", None, 1),
        ("f", Some("f"), 2),
        ("super::g", Some("g"), 2),
    ];
    assert_eq!(
        found,
        expected.map(|(path, name, line)| (path.to_owned(), name, line))
    );
}

#[test]
fn written_paths_are_read_with_the_modules_around_them() {
    let source =
        "fn f() { a::b(c::<d>::e, g.h()) } mod i { fn j() { super::k() } } macro!(super::l())";
    let code = read(source).code;
    let expected = ["a::b", "c", "self::k", "super::l"];
    assert_eq!(paths(&code), expected);
    assert_eq!(code.items, ["f", "j"]);
}

#[test]
fn modules_in_other_files_are_declared_with_what_leads_there() {
    let source = "mod a; mod b { pub mod c; } #[path = \"../d.rs\"]\nmod e;";
    let code = read(source).code;
    let found: Vec<_> = code
        .declarations
        .iter()
        .map(|one| (one.names.join("::"), one.at.as_deref(), one.line))
        .collect();
    let expected = [("a", None, 1), ("b::c", None, 1), ("e", Some("../d.rs"), 2)];
    assert_eq!(
        found,
        expected.map(|(name, at, line)| (name.to_owned(), at, line))
    );
}
