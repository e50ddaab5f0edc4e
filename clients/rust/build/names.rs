//! Names and comments of generated code (pure).

use serde_json::Value;

/// Words that Rust keeps for itself and the document uses as names.
const KEYWORDS: [&str; 6] = ["type", "match", "move", "ref", "loop", "use"];

/// `amountIn` and `Last-Event-ID` as Rust names a field or an argument.
pub fn snake(name: &str) -> String {
    let mut snake = String::new();
    let mut before_is_lower = false;
    for letter in name.chars() {
        if !letter.is_ascii_alphanumeric() {
            snake.push('_');
            before_is_lower = false;
            continue;
        }
        if letter.is_ascii_uppercase() && before_is_lower {
            snake.push('_');
        }
        before_is_lower = letter.is_ascii_lowercase() || letter.is_ascii_digit();
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

/// As [`snake`], where a field or an argument is declared.
pub fn field(name: &str) -> String {
    let snake = snake(name);
    if KEYWORDS.contains(&snake.as_str()) {
        format!("r#{snake}")
    } else {
        snake
    }
}

/// `amount_too_large`, `perKey` and `getQuote` as Rust names a type or a variant.
pub fn pascal(name: &str) -> String {
    let mut pascal = String::new();
    let mut begins = true;
    for letter in name.chars() {
        if letter.is_ascii_alphanumeric() {
            pascal.push(if begins {
                letter.to_ascii_uppercase()
            } else {
                letter
            });
        }
        begins = !letter.is_ascii_alphanumeric();
    }
    pascal
}

/// A description as a comment of documentation, or what the thing is where it has none.
pub fn comment(description: Option<&str>, otherwise: &str, indent: &str) -> String {
    let text = description
        .filter(|text| !text.is_empty())
        .unwrap_or(otherwise);
    let lines = text.lines().map(|line| {
        // What stands in brackets would be taken for a link, and a bare address for one without its marks.
        let line = line
            .replace('[', "\\[")
            .replace(']', "\\]")
            .replace('<', "\\<");
        format!("{indent}/// {}\n", line.trim_end())
    });
    lines.collect()
}

/// What a reference in the document names.
pub fn referred(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.rsplit('/').next()
}
