//! Parameters of methods: the keys that a codec, a topology or a mode takes in its table. A method
//! lists each key once, with range, default and meaning; reading, refusing, writing and the
//! registry all follow that list.

use std::collections::BTreeSet;

/// The most parameters of a method.
pub const PARAMETERS_MAX: usize = 6;

/// The values of a method's parameters, in the order of its list.
pub type Values = [f64; PARAMETERS_MAX];

/// A number or a name that a method takes: a key of the method's table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameter {
    /// The key.
    pub name: &'static str,
    /// The values that it may have.
    pub range: Range,
    /// Its value where the configuration gives none; without a default it must be given.
    pub default: Option<f64>,
    /// What it means, with an example.
    pub about: &'static str,
}

/// The values that a parameter may have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Range {
    /// Above the first, at most the second.
    OpenClosed(f64, f64),
    /// From the first to the second.
    Closed(f64, f64),
    /// A whole number from the first to the second.
    Whole(u32, u32),
    /// A power of two from the first to the second.
    PowerOfTwo(u32, u32),
    /// At least the first, and finite in f32.
    AtLeast(f64),
    /// One of these names. Its number is its place in the list.
    Choice(&'static [&'static str]),
}

impl Range {
    /// Whether a value is in it.
    pub fn contains(&self, value: f64) -> bool {
        let whole = value.fract() == 0.0;
        let within = |from: u32, to: u32| (f64::from(from)..=f64::from(to)).contains(&value);
        match *self {
            Self::OpenClosed(from, to) => value > from && value <= to,
            Self::Closed(from, to) => (from..=to).contains(&value),
            Self::Whole(from, to) => whole && within(from, to),
            Self::PowerOfTwo(from, to) => {
                whole && within(from, to) && (value as u32).is_power_of_two()
            }
            Self::AtLeast(from) => value >= from && (value as f32).is_finite(),
            Self::Choice(names) => whole && value >= 0.0 && (value as usize) < names.len(),
        }
    }

    /// A value in it: a hundredth, or the nearest value to that.
    pub fn example(&self) -> f64 {
        match *self {
            Self::OpenClosed(from, to) if from < 0.01 => to.min(0.01),
            Self::OpenClosed(_, to) => to,
            Self::Closed(from, to) => from.max(to.min(0.01)),
            Self::AtLeast(from) => from,
            Self::Whole(from, _) => f64::from(from),
            Self::PowerOfTwo(from, _) => f64::from(from.next_power_of_two()),
            Self::Choice(_) => 0.0,
        }
    }

    /// A value of it as TOML.
    pub fn to_toml(&self, value: f64) -> toml::Value {
        match self {
            Self::Choice(names) => toml::Value::String(names[value as usize].to_owned()),
            range if range.is_whole() => toml::Value::Integer(value as i64),
            _ => toml::Value::Float(value),
        }
    }

    /// Whether its values are whole numbers.
    pub const fn is_whole(&self) -> bool {
        matches!(self, Self::Whole(..) | Self::PowerOfTwo(..))
    }
}

impl core::fmt::Display for Range {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::OpenClosed(from, to) => write!(f, "in ({from}, {to}]"),
            Self::Closed(from, to) => write!(f, "in [{from}, {to}]"),
            Self::Whole(from, to) => write!(f, "a whole number from {from} to {to}"),
            Self::PowerOfTwo(from, to) => write!(f, "a power of two from {from} to {to}"),
            Self::AtLeast(from) => write!(f, "a number from {from}"),
            Self::Choice(names) => write!(f, "one of \"{}\"", names.join("\", \"")),
        }
    }
}

/// The parameters of one method, and where its configuration stands.
#[derive(Clone, Copy, Debug)]
pub struct Parameters {
    /// The table, such as `compression`.
    pub table: &'static str,
    /// The method's name in the configuration.
    pub method: &'static str,
    /// What it takes.
    pub list: &'static [Parameter],
}

impl Parameters {
    /// The values given, and the defaults of the others.
    ///
    /// # Errors
    /// When a parameter is missing, unknown or out of its range.
    pub fn values(&self, given: &[(&str, f64)]) -> Result<Values, ParameterError> {
        let known = |key: &str| self.list.iter().any(|p| p.name == key);
        if let Some((key, _)) = given.iter().find(|(key, _)| !known(key)) {
            return Err(self.does_not_apply(key));
        }
        let mut values = [0.0; PARAMETERS_MAX];
        for (value, parameter) in values.iter_mut().zip(self.list) {
            let given = given.iter().find(|(key, _)| *key == parameter.name);
            *value = self.check(parameter, given.map(|(_, value)| *value))?;
        }
        Ok(values)
    }

    /// The values that a table of the configuration gives, and the defaults of the others.
    ///
    /// # Errors
    /// As [`Parameters::values`], and when a value has the wrong type.
    pub fn read(&self, table: &toml::Table) -> Result<Values, ParameterError> {
        let mut given = Vec::new();
        for (key, value) in table {
            // A text, too, may be a key of another method.
            let parameter = self.list.iter().find(|p| p.name == key);
            let parameter = parameter.ok_or_else(|| self.does_not_apply(key))?;
            let number = match (value, parameter.range) {
                (_, Range::Choice(names)) => self.choose(parameter, names, value)?,
                (toml::Value::Integer(whole), _) => *whole as f64,
                (toml::Value::Float(number), _) => *number,
                (other, _) => {
                    return Err(ParameterError::NotANumber {
                        table: self.table,
                        parameter: key.clone(),
                        found: other.type_str(),
                    });
                }
            };
            given.push((key.as_str(), number));
        }
        self.values(&given)
    }

    /// Values as a table of the configuration.
    pub fn write(&self, values: &Values) -> toml::Table {
        let entry = |(parameter, value): (&Parameter, &f64)| {
            (parameter.name.to_owned(), parameter.range.to_toml(*value))
        };
        self.list.iter().zip(values).map(entry).collect()
    }

    /// The value of one parameter.
    ///
    /// # Panics
    /// If the list has no such parameter.
    pub fn number(&self, values: &Values, parameter: &str) -> f64 {
        let at = self.list.iter().position(|p| p.name == parameter);
        values[at.expect("a method asks for the parameters that it lists")]
    }

    fn does_not_apply(&self, key: &str) -> ParameterError {
        ParameterError::DoesNotApply {
            table: self.table,
            parameter: key.to_owned(),
            method: self.method,
        }
    }

    /// The number of the name that a table gives.
    fn choose(
        &self,
        parameter: &'static Parameter,
        names: &[&str],
        value: &toml::Value,
    ) -> Result<f64, ParameterError> {
        let at = names.iter().position(|name| value.as_str() == Some(name));
        at.map(|at| at as f64)
            .ok_or_else(|| ParameterError::Choice {
                table: self.table,
                parameter: parameter.name,
                method: self.method,
                found: value.to_string(),
                needed: parameter.range,
            })
    }

    fn check(
        &self,
        parameter: &'static Parameter,
        given: Option<f64>,
    ) -> Result<f64, ParameterError> {
        let value = given.or(parameter.default);
        let value = value.ok_or(ParameterError::Missing {
            table: self.table,
            parameter: parameter.name,
            method: self.method,
            about: parameter.about,
        })?;
        if parameter.range.contains(value) {
            return Ok(value);
        }
        Err(ParameterError::Range {
            table: self.table,
            parameter: parameter.name,
            method: self.method,
            found: value,
            needed: parameter.range,
        })
    }
}

/// The names of all parameters of some methods, sorted, each once.
pub fn names<'a>(lists: impl Iterator<Item = &'a [Parameter]>) -> Vec<&'static str> {
    let names: BTreeSet<_> = lists.flatten().map(|parameter| parameter.name).collect();
    names.into_iter().collect()
}

/// Why a method's parameters cannot be read.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ParameterError {
    /// No method of this name.
    #[error("`{key}`: `{found}` does not exist")]
    UnknownMethod {
        /// The key.
        key: &'static str,
        /// The name.
        found: String,
    },
    /// A parameter without a default is missing.
    #[error("`{table}.{parameter}` is missing for `{method}`; give {about}")]
    Missing {
        /// The table.
        table: &'static str,
        /// The parameter.
        parameter: &'static str,
        /// The method.
        method: &'static str,
        /// What it means.
        about: &'static str,
    },
    /// A value out of its range.
    #[error("`{table}.{parameter}` is {found}; for `{method}` it must be {needed}")]
    Range {
        /// The table.
        table: &'static str,
        /// The parameter.
        parameter: &'static str,
        /// The method.
        method: &'static str,
        /// Its value.
        found: f64,
        /// The range.
        needed: Range,
    },
    /// A name that is not one of those to choose from.
    #[error("`{table}.{parameter}` is {found}; for `{method}` it must be {needed}")]
    Choice {
        /// The table.
        table: &'static str,
        /// The parameter.
        parameter: &'static str,
        /// The method.
        method: &'static str,
        /// What was found.
        found: String,
        /// The names.
        needed: Range,
    },
    /// A parameter that this method does not have.
    #[error("`{table}.{parameter}` does not apply to `{method}`; remove it")]
    DoesNotApply {
        /// The table.
        table: &'static str,
        /// The parameter.
        parameter: String,
        /// The method.
        method: &'static str,
    },
    /// Not a number.
    #[error("`{table}.{parameter}`: found {found}, needs a number")]
    NotANumber {
        /// The table.
        table: &'static str,
        /// The parameter.
        parameter: String,
        /// What was found.
        found: &'static str,
    },
}
