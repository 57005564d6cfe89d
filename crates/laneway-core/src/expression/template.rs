//! Text with `${{ … }}` in it: cutting it into parts, and putting it together again with values.

use serde_json::Value;

use super::{Error, Expression, Part, Scope, Template, kind_of};

/// What one rendered value may hold, so that no input can make a program's environment explode.
pub(super) const MAX_RENDERED: usize = 1 << 20;

const OPEN: &str = "${{";
const CLOSE: &str = "}}";

impl Template {
    /// Every error's range is within `text`.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let mut parts = Vec::new();
        let mut at = 0;
        while let Some(found) = text[at..].find(OPEN) {
            let open = at + found;
            if open > at {
                parts.push(Part::Text(text[at..open].to_owned()));
            }
            let inside = open + OPEN.len();
            let Some(length) = closing(&text[inside..]) else {
                return Err(Error::new("`${{` is never closed; write `${{ … }}`").at(open..text.len()));
            };
            let source = &text[inside..inside + length];
            let leading = source.len() - source.trim_start().len();
            let expression = Expression::parse(source).map_err(|error| {
                let at = match &error.at {
                    Some(range) => inside + leading + range.start..inside + leading + range.end,
                    None => open..inside + length + CLOSE.len(),
                };
                error.at(at)
            })?;
            parts.push(Part::Expression(expression));
            at = inside + length + CLOSE.len();
        }
        if at < text.len() {
            parts.push(Part::Text(text[at..].to_owned()));
        }
        Ok(Self { parts })
    }

    /// Strings go in as they are, numbers and booleans as words, lists and objects as JSON.
    pub fn render(&self, scope: &Scope) -> Result<String, Error> {
        let mut out = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Expression(expression) => match expression.evaluate(scope)? {
                    Value::String(text) => out.push_str(&text),
                    Value::Null => {
                        return Err(Error::new(format!(
                            "`{}` is {}; give it a value with `| default(\"…\", true)`",
                            expression.source,
                            kind_of(&Value::Null)
                        )));
                    }
                    other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                        out.push_str(&other.to_string())
                    }
                },
            }
            if out.len() > MAX_RENDERED {
                return Err(Error::new(format!("the value grows beyond {MAX_RENDERED} bytes")));
            }
        }
        // The system ends every argument and variable at a NUL, so one would silently cut the value.
        if out.contains('\0') {
            return Err(Error::new("the value contains a NUL character"));
        }
        Ok(out)
    }

    /// As a value: that of the expression where the template is nothing but one, else the text.
    pub fn evaluate(&self, scope: &Scope) -> Result<Value, Error> {
        match self.parts.as_slice() {
            [Part::Expression(expression)] => expression.evaluate(scope),
            [..] => Ok(Value::String(self.render(scope)?)),
        }
    }

    pub fn expressions(&self) -> impl Iterator<Item = &Expression> {
        self.parts.iter().filter_map(|part| match part {
            Part::Text(_) => None,
            Part::Expression(expression) => Some(expression),
        })
    }

    /// Returns its text if no expression stands in it.
    pub fn fixed(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [] => Some(""),
            [Part::Text(text)] => Some(text),
            [_, ..] => None,
        }
    }

    /// Returns its text with the same word in the place of every expression: the shape of what it renders to.
    pub fn shape(&self, word: &str) -> String {
        let part = |part: &Part| match part {
            Part::Text(text) => text.clone(),
            Part::Expression(_) => word.to_owned(),
        };
        self.parts.iter().map(part).collect()
    }

    /// As it was written.
    pub fn source(&self) -> String {
        let part = |part: &Part| match part {
            Part::Text(text) => text.clone(),
            Part::Expression(expression) => format!("${{{{ {} }}}}", expression.source),
        };
        self.parts.iter().map(part).collect()
    }

    /// Names of the secrets it reads; a name may come more than once.
    pub fn secrets_read(&self) -> impl Iterator<Item = &str> {
        self.expressions().flat_map(Expression::secrets_read)
    }

    pub fn reads_item(&self) -> bool {
        self.expressions().any(Expression::reads_item)
    }

    /// Names of the steps it reads; a name may come more than once.
    pub fn steps_read(&self) -> impl Iterator<Item = String> {
        self.expressions().flat_map(Expression::steps_read)
    }
}

/// Length of the expression up to the `}}` that closes it: not one in quotes, nor one that closes
/// an object.
fn closing(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut quote = None;
    let mut depth = 0usize;
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        match quote {
            Some(_) if byte == b'\\' => at += 1,
            Some(open) if byte == open => quote = None,
            Some(_) => {}
            None => match byte {
                b'"' | b'\'' => quote = Some(byte),
                b'{' => depth += 1,
                b'}' if depth > 0 => depth -= 1,
                b'}' if bytes.get(at + 1) == Some(&b'}') => return Some(at),
                _ => {}
            },
        }
        at += 1;
    }
    None
}
