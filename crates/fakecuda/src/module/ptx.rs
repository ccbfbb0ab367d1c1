//! What a PTX text declares: its kernels with their parameters, and its variables.
//!
//! Only declarations are read; the instructions are never looked at.

use super::image::{Entry, Image, MOST_PARAMETER_BYTES, Parameter, Variable};
use std::str;

/// Reads a text. `None`: it is not PTX.
pub fn read(text: &[u8]) -> Option<Image> {
    let mut reader = Reader {
        tokens: Tokens { text, at: 0 },
        peeked: None,
    };
    let mut image = Image::default();
    let mut is_ptx = false;
    let mut is_extern = false;
    while let Some(token) = reader.next() {
        match token {
            b".version" => {
                is_ptx = true;
                continue;
            }
            b".extern" => {
                is_extern = true;
                continue;
            }
            b".visible" | b".weak" | b".common" => continue,
            b".entry" => {
                let (name, entry) = reader.entry()?;
                if !is_extern {
                    image.entries.insert(name, entry);
                }
            }
            b".func" => reader.skip_function(),
            b".global" | b".const" => {
                for (name, variable) in reader.variables() {
                    if !is_extern {
                        image.variables.insert(name, variable);
                    }
                }
            }
            b"{" => reader.skip_block(b"{", b"}"),
            _ => continue,
        }
        is_extern = false;
    }
    is_ptx.then_some(image)
}

/// Splits a text into words (letters, digits, `_ $ % .`) and single other characters.
struct Tokens<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Tokens<'a> {
    fn rest(&self) -> &'a [u8] {
        &self.text[self.at..]
    }

    fn skip_to_after(&mut self, end: &[u8]) {
        let length = self
            .rest()
            .windows(end.len())
            .position(|window| window == end);
        self.at = length.map_or(self.text.len(), |length| self.at + length + end.len());
    }

    fn skip_blanks(&mut self) {
        loop {
            match self.rest() {
                [b'/', b'/', ..] => self.skip_to_after(b"\n"),
                [b'/', b'*', ..] => self.skip_to_after(b"*/"),
                [blank, ..] if blank.is_ascii_whitespace() || *blank == 0 => self.at += 1,
                _ => return,
            }
        }
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        self.skip_blanks();
        let rest = self.rest();
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || b"_$%.".contains(byte);
        let length = match rest.first()? {
            b'"' => {
                let closing = rest[1..].iter().position(|&byte| byte == b'"');
                closing.map_or(rest.len(), |length| length + 2)
            }
            first if is_word(first) => rest
                .iter()
                .position(|byte| !is_word(byte))
                .unwrap_or(rest.len()),
            _ => 1,
        };
        self.at += length;
        Some(&rest[..length])
    }
}

/// Reads declarations.
struct Reader<'a> {
    tokens: Tokens<'a>,
    peeked: Option<&'a [u8]>,
}

/// What stands before a name: the type, and how it is aligned.
#[derive(Default)]
struct Kind {
    bytes: u64,
    align: Option<u64>,
    is_managed: bool,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Option<&'a [u8]> {
        self.peeked.take().or_else(|| self.tokens.next())
    }

    fn peek(&mut self) -> Option<&'a [u8]> {
        if self.peeked.is_none() {
            self.peeked = self.tokens.next();
        }
        self.peeked
    }

    fn takes(&mut self, token: &[u8]) -> bool {
        let is_next = self.peek() == Some(token);
        if is_next {
            self.peeked = None;
        }
        is_next
    }

    fn number(&mut self) -> Option<u64> {
        let token = self.next()?;
        integer(token)
    }

    fn name(&mut self) -> Option<String> {
        self.next()
            .map(|name| String::from_utf8_lossy(name).into_owned())
    }

    /// Skips what is between brackets, of which the first was read.
    fn skip_block(&mut self, open: &[u8], close: &[u8]) {
        let mut depth = 1;
        while let Some(token) = self.next() {
            if token == open {
                depth += 1;
            } else if token == close {
                depth -= 1;
                if depth == 0 {
                    return;
                }
            }
        }
    }

    /// Skips a function with its body, or a declaration of one.
    fn skip_function(&mut self) {
        while let Some(token) = self.next() {
            match token {
                b";" => return,
                b"{" => return self.skip_block(b"{", b"}"),
                _ => {}
            }
        }
    }

    /// A kernel, after `.entry`.
    fn entry(&mut self) -> Option<(String, Entry)> {
        let name = self.name()?;
        let mut entry = Entry::default();
        let mut parameters = Vec::new();
        let mut are_known = true;
        if self.takes(b"(") {
            while let Some(token) = self.next() {
                match token {
                    b")" => break,
                    b".param" => match self.parameter(&parameters) {
                        Some(parameter) => parameters.push(parameter),
                        None => are_known = false,
                    },
                    _ => {}
                }
            }
        }
        entry.parameters = are_known.then_some(parameters);
        while let Some(token) = self.next() {
            match token {
                b".maxntid" | b".reqntid" => entry.most_threads = self.product(),
                b";" => break,
                b"{" => {
                    entry.shared_bytes = self.shared_in_body();
                    break;
                }
                _ => {}
            }
        }
        Some((name, entry))
    }

    /// `x, y, z` as one number.
    fn product(&mut self) -> Option<u64> {
        let mut product = self.number()?;
        while self.takes(b",") {
            product = product.checked_mul(self.number()?)?;
        }
        Some(product)
    }

    /// Bytes of shared variables that a body declares. The body's opening brace was read.
    fn shared_in_body(&mut self) -> u64 {
        let mut bytes = 0u64;
        let mut depth = 1;
        while let Some(token) = self.next() {
            match token {
                b"{" => depth += 1,
                b"}" => {
                    depth -= 1;
                    if depth == 0 {
                        break;
                    }
                }
                b".shared" => {
                    let variables = self.variables();
                    bytes = variables.iter().fold(bytes, |sum, (_, variable)| {
                        sum.saturating_add(variable.bytes)
                    });
                }
                _ => {}
            }
        }
        bytes
    }

    /// Attributes and type up to the name, which is left.
    fn kind(&mut self) -> Option<Kind> {
        let mut kind = Kind {
            bytes: 1,
            ..Kind::default()
        };
        let mut vector = 1;
        let mut has_type = false;
        while self.peek()?.starts_with(b".") {
            match self.next()? {
                b".align" => {
                    let align = self.number()?;
                    // After the type it is what a pointer points to that is aligned.
                    if !has_type {
                        kind.align = Some(align);
                    }
                }
                b".attribute" => {
                    self.takes(b"(");
                    while let Some(token) = self.next() {
                        match token {
                            b")" => break,
                            b".managed" => kind.is_managed = true,
                            _ => {}
                        }
                    }
                }
                b".v2" => vector = 2,
                b".v4" => vector = 4,
                word => {
                    if let Some(bytes) = type_bytes(word) {
                        kind.bytes = bytes;
                        has_type = true;
                    }
                }
            }
        }
        kind.bytes *= vector;
        Some(kind)
    }

    /// The dimensions after a name.
    fn elements(&mut self) -> Option<u64> {
        let mut elements = 1u64;
        while self.takes(b"[") {
            if self.takes(b"]") {
                return Some(0);
            }
            elements = elements.checked_mul(self.number()?)?;
            self.takes(b"]");
        }
        Some(elements)
    }

    /// A parameter, after `.param`. `None`: it cannot be read, or they are more than a kernel takes.
    fn parameter(&mut self, before: &[Parameter]) -> Option<Parameter> {
        let kind = self.kind()?;
        self.name()?;
        let bytes = kind.bytes.checked_mul(self.elements()?)?;
        let bytes = usize::try_from(bytes).ok()?;
        let align = kind.align.unwrap_or(kind.bytes).max(1);
        let end = before.last().map_or(0, |last| last.offset + last.bytes);
        let offset = end.checked_next_multiple_of(align as usize)?;
        let is_taken = offset.checked_add(bytes)? <= MOST_PARAMETER_BYTES;
        is_taken.then_some(Parameter { offset, bytes })
    }

    /// The variables of a declaration, after its state space.
    fn variables(&mut self) -> Vec<(String, Variable)> {
        let mut variables = Vec::new();
        let Some(kind) = self.kind() else {
            return variables;
        };
        while let (Some(name), Some(elements)) = (self.name(), self.elements()) {
            let mut bytes = kind.bytes.saturating_mul(elements);
            let initial = if self.takes(b"=") {
                self.values(kind.bytes)
            } else {
                Vec::new()
            };
            bytes = bytes.max(initial.len() as u64);
            let is_managed = kind.is_managed;
            variables.push((
                name,
                Variable {
                    bytes,
                    initial,
                    is_managed,
                },
            ));
            if !self.takes(b",") {
                break;
            }
        }
        while !matches!(self.next(), None | Some(b";")) {}
        variables
    }

    /// The bytes of an initialiser. Addresses of other variables are taken as zero.
    fn values(&mut self, bytes: u64) -> Vec<u8> {
        let mut values = Vec::new();
        let mut depth = 0;
        let mut is_negative = false;
        while let Some(token) = self.peek() {
            match token {
                b";" => break,
                b"," if depth == 0 => break,
                b"{" => depth += 1,
                b"}" => depth -= 1,
                b"-" => is_negative = true,
                b"(" => {
                    self.next();
                    self.skip_block(b"(", b")");
                    continue;
                }
                b"," | b"+" => {}
                word => {
                    let value = value(word);
                    let value = if is_negative {
                        value.wrapping_neg()
                    } else {
                        value
                    };
                    is_negative = false;
                    let length = usize::try_from(bytes.min(8)).unwrap_or(8);
                    values.extend_from_slice(&value.to_le_bytes()[..length]);
                }
            }
            self.next();
        }
        values
    }
}

/// Bytes of a type of PTX.
fn type_bytes(word: &[u8]) -> Option<u64> {
    Some(match word {
        b".b8" | b".u8" | b".s8" | b".pred" | b".e4m3" | b".e5m2" => 1,
        b".b16" | b".u16" | b".s16" | b".f16" | b".bf16" => 2,
        b".b32" | b".u32" | b".s32" | b".f32" | b".f16x2" | b".bf16x2" => 4,
        b".b64" | b".u64" | b".s64" | b".f64" | b".texref" | b".samplerref" | b".surfref" => 8,
        b".b128" => 16,
        _ => return None,
    })
}

/// A whole number of PTX.
fn integer(word: &[u8]) -> Option<u64> {
    let text = str::from_utf8(word).ok()?.trim_end_matches('U');
    let digits = |prefix: &str, radix| {
        let digits = text.strip_prefix(prefix)?;
        u64::from_str_radix(digits, radix).ok()
    };
    digits("0x", 16)
        .or_else(|| digits("0X", 16))
        .or_else(|| digits("0b", 2))
        .or_else(|| digits("0B", 2))
        .or_else(|| (text.len() > 1).then(|| digits("0", 8)).flatten())
        .or_else(|| text.parse().ok())
}

/// The bits of a number of PTX; zero for a name.
fn value(word: &[u8]) -> u64 {
    let text = str::from_utf8(word).unwrap_or("");
    let float = |prefix: &str| {
        let digits = text.strip_prefix(prefix)?;
        u64::from_str_radix(digits, 16).ok()
    };
    float("0f")
        .or_else(|| float("0F"))
        .or_else(|| float("0d"))
        .or_else(|| float("0D"))
        .or_else(|| integer(word))
        .unwrap_or(0)
}
