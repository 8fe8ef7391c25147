//! The table of options as people read it.

use crate::environment::OTHER_VARIABLES;
use crate::key::Key;

/// The table of options for a page of the docs.
pub fn keys_as_markdown() -> String {
    let mut text =
        String::from("| option | takes | default | what it does |\n| --- | --- | --- | --- |\n");
    for key in Key::ALL {
        let info = key.info();
        text += &format!(
            "| `{}` | {} | {} | {} |\n",
            info.name,
            info.kind.describe(),
            info.default_in_words(),
            info.about
        );
    }
    text
}

/// The table of variables that are no options, for a page of the docs.
pub fn variables_as_markdown() -> String {
    let mut text = String::from("| variable | what it is for |\n| --- | --- |\n");
    for (name, about) in OTHER_VARIABLES {
        text += &format!("| `{name}` | {about} |\n");
    }
    text
}

/// The options for a terminal.
pub fn keys_as_text() -> String {
    let names = Key::ALL.iter().map(|key| key.name().len());
    let width = names.max().unwrap_or(0);
    let mut text = String::new();
    for key in Key::ALL {
        let info = key.info();
        text += &format!(
            "  {:width$}  {}\n  {:width$}  takes {}; default: {}\n",
            info.name,
            info.about,
            "",
            info.kind.describe(),
            info.default_in_words(),
        );
    }
    text
}
