//! The text of an einsum, and what it says.

use std::ops::Range;

/// A name in a formula, by its place in [`Formula::names`].
pub(super) type Name = usize;

/// What a formula says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Formula {
    /// All names, in the order in which they first occur.
    pub(super) names: Vec<String>,
    pub(super) operands: Vec<Term>,
    pub(super) output: Option<Term>,
}

/// The axes of one operand, or of the result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Term {
    pub(super) items: Vec<Item>,
    /// Where it stands in the text, in bytes.
    pub(super) at: Range<usize>,
}

/// One axis, or a place for several.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Item {
    pub(super) kind: ItemKind,
    pub(super) at: Range<usize>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum ItemKind {
    /// `...`
    Rest,
    /// `i`
    Plain(Name),
    /// `2*i+k-1`, or a number alone.
    Affine {
        terms: Vec<(Name, i64)>,
        offset: i64,
    },
    /// `i^j`
    Blocks(Vec<Name>),
    /// `(h d)`
    Group(Vec<Name>),
}

impl ItemKind {
    /// The names that it holds.
    pub(super) fn names(&self) -> Vec<Name> {
        match self {
            ItemKind::Rest => Vec::new(),
            ItemKind::Plain(name) => vec![*name],
            ItemKind::Affine { terms, .. } => terms.iter().map(|(name, _)| *name).collect(),
            ItemKind::Blocks(names) | ItemKind::Group(names) => names.clone(),
        }
    }
}

/// What is wrong with a formula, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Mistake {
    pub(super) at: Range<usize>,
    pub(super) reason: String,
}

impl Mistake {
    pub(super) fn new(at: &Range<usize>, reason: impl Into<String>) -> Mistake {
        Mistake {
            at: at.clone(),
            reason: reason.into(),
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Token {
    Word(String),
    Number(i64),
    Rest,
    Open,
    Close,
    Caret,
    Star,
    Plus,
    Minus,
    Comma,
    Arrow,
}

impl Token {
    fn starts_axis(&self) -> bool {
        matches!(
            self,
            Token::Word(_) | Token::Number(_) | Token::Rest | Token::Open
        )
    }

    fn ends_axis(&self) -> bool {
        matches!(
            self,
            Token::Word(_) | Token::Number(_) | Token::Rest | Token::Close
        )
    }
}

type Placed = (Token, Range<usize>);

/// A number, a name, or both, multiplied.
type Product = (Option<i64>, Option<Name>, Range<usize>);

fn number(digits: &str, at: &Range<usize>) -> Result<Token, Mistake> {
    digits
        .parse()
        .map(Token::Number)
        .map_err(|_| Mistake::new(at, "the number is too large"))
}

/// The tokens, with words as they stand, and whether words are names of several letters.
fn tokens(text: &str) -> Result<(Vec<Placed>, bool), Mistake> {
    let mut tokens: Vec<Placed> = Vec::new();
    let mut words = false;
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        let run = |keep: fn(char) -> bool| rest.find(|c| !keep(c)).unwrap_or(rest.len());
        let (token, length) = match c {
            _ if c.is_whitespace() => {
                at += c.len_utf8();
                continue;
            }
            _ if rest.starts_with("...") => (Token::Rest, 3),
            _ if rest.starts_with("->") => (Token::Arrow, 2),
            '(' => (Token::Open, 1),
            ')' => (Token::Close, 1),
            '^' => (Token::Caret, 1),
            '*' => (Token::Star, 1),
            '+' => (Token::Plus, 1),
            '-' => (Token::Minus, 1),
            ',' => (Token::Comma, 1),
            '{' => {
                let Some(end) = rest.find('}').filter(|end| *end > 1) else {
                    return Err(Mistake::new(
                        &(at..at + 1),
                        "`{` begins a name that ends with `}`",
                    ));
                };
                words |= rest[1..end].chars().count() > 1;
                (Token::Word(rest[1..end].trim().to_owned()), end + 1)
            }
            '0'..='9' => {
                let length = run(|c| c.is_ascii_digit());
                (number(&rest[..length], &(at..at + length))?, length)
            }
            _ if c.is_alphabetic() || c == '_' => {
                let length = run(|c| c.is_alphanumeric() || c == '_');
                (Token::Word(rest[..length].to_owned()), length)
            }
            _ => {
                let reason = format!("`{c}` means nothing in a formula");
                return Err(Mistake::new(&(at..at + c.len_utf8()), reason));
            }
        };
        if let Some((before, place)) = tokens.last() {
            words |= place.end < at && before.ends_axis() && token.starts_axis();
        }
        tokens.push((token, at..at + length));
        at += length;
    }
    Ok((tokens, words))
}

/// Every letter as a name of its own.
fn letters(tokens: Vec<Placed>) -> Result<Vec<Placed>, Mistake> {
    let mut single = Vec::new();
    for (token, place) in tokens {
        let Token::Word(word) = &token else {
            single.push((token, place));
            continue;
        };
        let mut at = 0;
        while let Some(c) = word[at..].chars().next() {
            let digits = word[at..]
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(word.len() - at);
            let length = if digits > 0 { digits } else { c.len_utf8() };
            let here = place.start + at..place.start + at + length;
            let token = match digits {
                0 => Token::Word(c.to_string()),
                _ => number(&word[at..at + digits], &here)?,
            };
            single.push((token, here));
            at += length;
        }
    }
    Ok(single)
}

struct Parser<'a> {
    tokens: std::iter::Peekable<std::slice::Iter<'a, Placed>>,
    names: Vec<String>,
    end: usize,
}

impl Parser<'_> {
    fn next_is(&mut self, token: &Token) -> Option<Range<usize>> {
        let (_, at) = self.tokens.next_if(|(next, _)| next == token)?;
        Some(at.clone())
    }

    fn name(&mut self, word: &str) -> Name {
        let found = self.names.iter().position(|name| name == word);
        found.unwrap_or_else(|| {
            self.names.push(word.to_owned());
            self.names.len() - 1
        })
    }

    fn term(&mut self) -> Result<Term, Mistake> {
        let start = self.tokens.peek().map_or(self.end, |(_, at)| at.start);
        let mut items: Vec<Item> = Vec::new();
        while let Some((token, at)) = self.tokens.peek() {
            match token {
                Token::Comma | Token::Arrow => break,
                Token::Rest => {
                    if items.iter().any(|item| item.kind == ItemKind::Rest) {
                        return Err(Mistake::new(at, "`...` stands in one place of a term"));
                    }
                    let at = at.clone();
                    self.tokens.next();
                    items.push(Item {
                        kind: ItemKind::Rest,
                        at,
                    });
                }
                Token::Open => items.push(self.group()?),
                _ => items.push(self.axis()?),
            }
        }
        let end = items.last().map_or(start, |item| item.at.end);
        Ok(Term {
            items,
            at: start..end,
        })
    }

    fn group(&mut self) -> Result<Item, Mistake> {
        let open = self.next_is(&Token::Open).expect("a group was seen");
        let mut names = Vec::new();
        loop {
            match self.tokens.next() {
                Some((Token::Word(word), at)) => {
                    let name = self.name(word);
                    if names.contains(&name) {
                        let reason = format!("`{word}` stands twice in a group");
                        return Err(Mistake::new(at, reason));
                    }
                    names.push(name);
                }
                Some((Token::Close, at)) if !names.is_empty() => {
                    return Ok(Item {
                        kind: ItemKind::Group(names),
                        at: open.start..at.end,
                    });
                }
                Some((_, at)) => return Err(Mistake::new(at, "a group holds names only: `(h d)`")),
                None => return Err(Mistake::new(&open, "`(` is not closed")),
            }
        }
    }

    /// A name or number, sums of multiples of them, or blocks.
    fn axis(&mut self) -> Result<Item, Mistake> {
        let (mut terms, mut offset) = (Vec::<(Name, i64)>::new(), 0i64);
        let mut whole: Option<Range<usize>> = None;
        let mut bare = true;
        loop {
            let minus = self.next_is(&Token::Minus);
            let sign = if minus.is_some() { -1 } else { 1 };
            let (factor, name, at) = self.product()?;
            let start = minus.map_or(at.start, |minus| minus.start);
            let at = start..at.end;
            let value = factor.unwrap_or(1);
            match name {
                Some(name) if sign > 0 && value > 0 => {
                    match terms.iter_mut().find(|term| term.0 == name) {
                        Some(_) => {
                            let reason =
                                format!("`{}` stands twice in one index", self.names[name]);
                            return Err(Mistake::new(&at, reason));
                        }
                        None => terms.push((name, value)),
                    }
                }
                Some(_) => return Err(Mistake::new(&at, "steps along an axis are at least 1")),
                None => {
                    offset = value
                        .checked_mul(sign)
                        .and_then(|value| offset.checked_add(value))
                        .ok_or_else(|| Mistake::new(&at, "the number is too large"))?;
                }
            }
            bare &= factor.is_none();
            whole = Some(whole.map_or(at.clone(), |whole| whole.start..at.end));
            let more = matches!(self.tokens.peek(), Some((Token::Plus | Token::Minus, _)));
            if !more {
                break;
            }
            bare = false;
            self.next_is(&Token::Plus);
        }
        let at = whole.expect("at least one product was read");
        let plain = match terms[..] {
            [(name, 1)] if bare => Some(name),
            _ => None,
        };
        if let Some((Token::Caret, caret)) = self.tokens.peek() {
            let Some(first) = plain else {
                return Err(Mistake::new(caret, "`^` joins names only: `i^j`"));
            };
            return self.blocks(first, at);
        }
        let kind = match plain {
            Some(name) => ItemKind::Plain(name),
            None => ItemKind::Affine { terms, offset },
        };
        Ok(Item { kind, at })
    }

    fn blocks(&mut self, first: Name, mut at: Range<usize>) -> Result<Item, Mistake> {
        let mut names = vec![first];
        while let Some(caret) = self.next_is(&Token::Caret) {
            let Some((Token::Word(word), place)) = self.tokens.next() else {
                return Err(Mistake::new(&caret, "`^` joins names only: `i^j`"));
            };
            let name = self.name(word);
            if names.contains(&name) {
                let reason = format!("`{word}` is joined with itself");
                return Err(Mistake::new(place, reason));
            }
            names.push(name);
            at.end = place.end;
        }
        Ok(Item {
            kind: ItemKind::Blocks(names),
            at,
        })
    }

    /// `i`, `3`, `3*i` or `i*3`.
    fn product(&mut self) -> Result<Product, Mistake> {
        let missing = |at: &Range<usize>| Mistake::new(at, "a name or a number is missing here");
        let end = self.end..self.end;
        let read = |parser: &mut Self| match parser.tokens.next() {
            Some((Token::Number(value), at)) => Ok((Some(*value), None, at.clone())),
            Some((Token::Word(word), at)) => Ok((None, Some(parser.name(word)), at.clone())),
            Some((_, at)) => Err(missing(at)),
            None => Err(missing(&end)),
        };
        let (mut factor, mut name, mut at) = read(self)?;
        if let Some(star) = self.next_is(&Token::Star) {
            let (other, other_name, place) = read(self)?;
            if factor.is_some() == other.is_some() {
                return Err(Mistake::new(
                    &star,
                    "a step is a number times a name: `2*i`",
                ));
            }
            factor = factor.or(other);
            name = name.or(other_name);
            at.end = place.end;
        }
        Ok((factor, name, at))
    }
}

/// What a text says.
pub(super) fn parse(text: &str) -> Result<Formula, Mistake> {
    let (mut tokens, words) = tokens(text)?;
    if !words {
        tokens = letters(tokens)?;
    }
    let mut parser = Parser {
        tokens: tokens.iter().peekable(),
        names: Vec::new(),
        end: text.len(),
    };
    let mut operands = vec![parser.term()?];
    while parser.next_is(&Token::Comma).is_some() {
        operands.push(parser.term()?);
    }
    let output = match parser.next_is(&Token::Arrow) {
        Some(_) => Some(parser.term()?),
        None => None,
    };
    if let Some((_, at)) = parser.tokens.peek() {
        return Err(Mistake::new(
            at,
            "a formula has one result, and it ends there",
        ));
    }
    Ok(Formula {
        names: parser.names,
        operands,
        output,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(formula: &str) -> String {
        let parsed = match parse(formula) {
            Ok(parsed) => parsed,
            Err(mistake) => return format!("{:?}: {}", mistake.at, mistake.reason),
        };
        let name = |name: &Name| parsed.names[*name].as_str();
        let item = |item: &Item| match &item.kind {
            ItemKind::Rest => "...".to_owned(),
            ItemKind::Plain(at) => name(at).to_owned(),
            ItemKind::Affine { terms, offset } => {
                let terms = terms.iter().map(|(at, by)| format!("{by}*{}+", name(at)));
                format!("{}{offset}", terms.collect::<String>())
            }
            ItemKind::Blocks(names) => names.iter().map(name).collect::<Vec<_>>().join("^"),
            ItemKind::Group(names) => {
                format!("({})", names.iter().map(name).collect::<Vec<_>>().join(" "))
            }
        };
        let term = |term: &Term| term.items.iter().map(item).collect::<Vec<_>>().join(" ");
        let operands: Vec<_> = parsed.operands.iter().map(term).collect();
        let output = parsed
            .output
            .as_ref()
            .map_or(String::new(), |output| format!(" -> {}", term(output)));
        operands.join(", ") + &output
    }

    #[test]
    fn letters_stand_alone_unless_a_space_parts_axes() {
        assert_eq!(text("ij, jk -> ik"), "i j, j k -> i k");
        assert_eq!(
            text("batch time, time -> batch"),
            "batch time, time -> batch"
        );
        assert_eq!(text("...i0, 2*i + k -> "), "... i 0, 2*i+1*k+0 -> ");
        assert_eq!(text("bi2*j+3k"), "b i 2*j+3 k");
        assert_eq!(text("{batch},{batch}i"), "batch, batch i");
    }

    #[test]
    fn groups_and_blocks() {
        assert_eq!(text("b (h d) -> b h d"), "b (h d) -> b h d");
        assert_eq!(text("i^jk->ik"), "i^j k -> i k");
        assert_eq!(text("i-1"), "1*i+-1");
        assert_eq!(text(""), "");
    }

    #[test]
    fn mistakes_have_a_place() {
        assert_eq!(text("i#j"), "1..2: `#` means nothing in a formula");
        assert_eq!(
            text("i...j..."),
            "5..8: `...` stands in one place of a term"
        );
        assert_eq!(text("2*3"), "1..2: a step is a number times a name: `2*i`");
        assert_eq!(text("i+"), "2..2: a name or a number is missing here");
        assert_eq!(text("(h d"), "0..1: `(` is not closed");
        assert_eq!(
            text("i->i->i"),
            "4..6: a formula has one result, and it ends there"
        );
        assert_eq!(text("i-j"), "1..3: steps along an axis are at least 1");
        assert_eq!(text("2*i^j"), "3..4: `^` joins names only: `i^j`");
    }
}
