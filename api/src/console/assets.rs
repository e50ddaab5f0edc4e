//! Assets: the console's style sheet, scripts and icon, built into the binary.

const STYLE: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// The icon of all pages.
pub const ICON: &str = "icon.svg";

/// The files by their names, each with its media type.
const ASSETS: [(&str, &str, &str); 21] = [
    ("console.css", STYLE, include_str!("console.css")),
    ("page.js", SCRIPT, include_str!("page.js")),
    ("overview.js", SCRIPT, include_str!("overview.js")),
    ("findings.js", SCRIPT, include_str!("findings.js")),
    ("pools.js", SCRIPT, include_str!("pools.js")),
    ("quotes.js", SCRIPT, include_str!("quotes.js")),
    ("swap.js", SCRIPT, include_str!("swap.js")),
    ("explain.js", SCRIPT, include_str!("explain.js")),
    ("explanation.js", SCRIPT, include_str!("explanation.js")),
    ("shape.js", SCRIPT, include_str!("shape.js")),
    ("wallets.js", SCRIPT, include_str!("wallets.js")),
    ("webhooks.js", SCRIPT, include_str!("webhooks.js")),
    ("conditions.js", SCRIPT, include_str!("conditions.js")),
    ("deliveries.js", SCRIPT, include_str!("deliveries.js")),
    ("delivery.js", SCRIPT, include_str!("delivery.js")),
    ("operations.js", SCRIPT, include_str!("operations.js")),
    ("dry-run.js", SCRIPT, include_str!("dry-run.js")),
    ("events.js", SCRIPT, include_str!("events.js")),
    ("keys.js", SCRIPT, include_str!("keys.js")),
    ("usage.js", SCRIPT, include_str!("usage.js")),
    (ICON, "image/svg+xml", include_str!("icon.svg")),
];

/// Media type and text of the file of this name.
pub fn find(name: &str) -> Option<(&'static str, &'static str)> {
    let found = ASSETS.iter().find(|(known, ..)| *known == name);
    found.map(|&(_, media_type, text)| (media_type, text))
}

#[cfg(test)]
pub fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    ASSETS.iter().map(|&(name, _, text)| (name, text))
}
