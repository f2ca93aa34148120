//! Parameters of methods: the keys that a codec, a topology, an optimizer or a rule takes in its table.
//! A method lists each key once, with range, default and meaning; reading, refusing, writing and the
//! registry all follow that list.

use serde::de::DeserializeOwned;
use std::collections::BTreeSet;

/// The most parameters of a method, where a pair counts as two.
pub const PARAMETERS_MAX: usize = 6;

/// Parts of a number in thousandths.
const THOUSAND: f64 = 1e3;

/// The values of a method's parameters, in the order of its list. A pair has two.
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
    /// Its meaning, with an example.
    pub about: &'static str,
}

impl Parameter {
    /// A parameter with a default.
    pub(crate) const fn new(
        name: &'static str,
        range: Range,
        default: f64,
        about: &'static str,
    ) -> Self {
        Self {
            name,
            range,
            default: Some(default),
            about,
        }
    }

    /// A parameter that must be given; where it is missing, `needed` says what to give.
    pub(crate) const fn required(
        name: &'static str,
        range: &'static Range,
        needed: &'static str,
        about: &'static str,
    ) -> Self {
        Self {
            name,
            range: Range::Given(range, needed),
            default: None,
            about,
        }
    }

    /// The key of a table with this value.
    pub(crate) fn entry(&self, value: f64) -> (String, toml::Value) {
        (self.name.to_owned(), self.range.to_toml(value))
    }

    /// Its default as TOML.
    pub fn usual(&self) -> Option<toml::Value> {
        let [first, second] = [0, 1].map(|place| self.default_at(place));
        self.range.write(&[first?, second?])
    }

    /// The default of its number at this place.
    const fn default_at(&self, place: usize) -> Option<f64> {
        match self.range {
            Range::Pair(usual) => Some(usual[place]),
            _ => self.default,
        }
    }
}

/// The type of a number in the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// `f64`.
    Real,
    /// `u32`.
    Small,
    /// `u64`.
    Large,
    /// `usize`.
    Size,
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
    /// Above zero and finite in f32, in which the arithmetic is done.
    Above,
    /// Zero or above, and finite in f32.
    NotNegative,
    /// Zero or above in f32, and below one.
    BelowOne,
    /// Above zero in f32, and below one.
    Between,
    /// Two numbers, each zero or above in f32, and below one; with their defaults.
    Pair([f64; 2]),
    /// From the first to the second in thousandths, to which it is rounded.
    Thousandths(u16, u16),
    /// A whole number from the first to the second.
    Count(Number, u64, u64),
    /// A whole number above zero.
    AtLeastOne(Number),
    /// One of these names, as [`Range::Choice`], in fewer words.
    Names(&'static [&'static str]),
    /// In words: the method checks it, because it depends on other keys.
    Words(Number, &'static str),
    /// A value of this range that has no default, and what to give.
    Given(&'static Range, &'static str),
}

/// The most that a number of the configuration may be, for ranges without an upper bound.
const UNBOUNDED: f64 = u64::MAX as f64;

/// A value as a type, or the reason that serde gives.
fn typed<T: DeserializeOwned>(value: &toml::Value) -> Result<T, String> {
    let typed = value.clone().try_into();
    typed.map_err(|error| error.message().to_owned())
}

impl Range {
    /// Set for a value within the range.
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
            Self::Choice(names) | Self::Names(names) => {
                whole && value >= 0.0 && (value as usize) < names.len()
            }
            Self::Above => value as f32 > 0.0 && (value as f32).is_finite(),
            Self::NotNegative => value >= 0.0 && (value as f32).is_finite(),
            Self::BelowOne | Self::Pair(_) => (0.0..1.0).contains(&(value as f32)),
            Self::Between => value as f32 > 0.0 && value < 1.0,
            Self::Thousandths(from, to) => {
                (f64::from(from)..=f64::from(to)).contains(&(value * THOUSAND).round())
            }
            Self::Count(_, from, to) => whole && (from as f64..=to as f64).contains(&value),
            Self::AtLeastOne(_) => whole && (1.0..=UNBOUNDED).contains(&value),
            Self::Words(..) => true,
            Self::Given(range, _) => range.contains(value),
        }
    }

    /// The numbers of a value, of which a pair has two; `None` for a name that is not in its list.
    ///
    /// # Errors
    /// What serde says of a value of another type.
    pub(crate) fn numbers(&self, value: &toml::Value) -> Result<Option<Vec<f64>>, String> {
        let number = match *self {
            Self::Given(range, _) => return range.numbers(value),
            Self::Pair(_) => return Ok(Some(typed::<[f64; 2]>(value)?.to_vec())),
            Self::Names(names) | Self::Choice(names) => {
                let name: String = typed(value)?;
                let at = names.iter().position(|known| *known == name);
                return Ok(at.map(|at| vec![at as f64]));
            }
            Self::Thousandths(..) if self.contains(typed(value)?) => {
                (typed::<f64>(value)? * THOUSAND).round() / THOUSAND
            }
            range => match range.number() {
                Number::Real => typed(value)?,
                Number::Small => f64::from(typed::<u32>(value)?),
                Number::Large => typed::<u64>(value)? as f64,
                Number::Size => typed::<usize>(value)? as f64,
            },
        };
        Ok(Some(vec![number]))
    }

    /// The type of its numbers.
    const fn number(&self) -> Number {
        match *self {
            Self::Count(number, ..) | Self::AtLeastOne(number) | Self::Words(number, _) => number,
            Self::Whole(..) | Self::PowerOfTwo(..) => Number::Small,
            Self::Given(range, _) => range.number(),
            _ => Number::Real,
        }
    }

    /// How many numbers a value has.
    const fn width(&self) -> usize {
        match self {
            Self::Pair(_) => 2,
            _ => 1,
        }
    }

    /// The numbers of a value as TOML.
    fn write(&self, numbers: &[f64]) -> Option<toml::Value> {
        match (self, numbers) {
            (Self::Pair(_), [first, second, ..]) => Some(vec![*first, *second].into()),
            (_, [number, ..]) => Some(self.to_toml(*number)),
            _ => None,
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
            Self::Count(_, from, _) => from as f64,
            Self::AtLeastOne(_) => 1.0,
            Self::Thousandths(from, _) => f64::from(from) / THOUSAND,
            Self::Above | Self::Between => 0.01,
            Self::Given(range, _) => range.example(),
            _ => 0.0,
        }
    }

    /// A value of it as TOML.
    pub fn to_toml(&self, value: f64) -> toml::Value {
        match self {
            Self::Choice(names) | Self::Names(names) => {
                toml::Value::String(names[value as usize].to_owned())
            }
            range if range.is_whole() => toml::Value::Integer(value as i64),
            _ => toml::Value::Float(value),
        }
    }

    /// Set where its values are whole numbers.
    pub const fn is_whole(&self) -> bool {
        !matches!(self.number(), Number::Real)
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
            Self::Above => write!(f, "a number above 0"),
            Self::NotNegative => write!(f, "0 or a number above"),
            Self::BelowOne | Self::Pair(_) => write!(f, "in [0, 1)"),
            Self::Between => write!(f, "in (0, 1)"),
            Self::Thousandths(from, to) => {
                let [from, to] = [from, to].map(|part| f64::from(*part) / THOUSAND);
                write!(f, "from {from} to {to}")
            }
            Self::Count(_, from, to) => write!(f, "from {from} to {to}"),
            Self::AtLeastOne(_) => write!(f, "at least 1"),
            Self::Names(names) => write!(f, "{}", names.join(", ")),
            Self::Words(_, words) => write!(f, "{words}"),
            Self::Given(range, _) => range.fmt(f),
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
    /// The parameters that it takes.
    pub list: &'static [Parameter],
}

impl Parameters {
    pub(crate) const fn new(
        table: &'static str,
        method: &'static str,
        list: &'static [Parameter],
    ) -> Self {
        Self {
            table,
            method,
            list,
        }
    }

    /// The values given, and the defaults of the others.
    ///
    /// # Errors
    /// When a parameter is missing, unknown or out of its range.
    pub fn values(&self, given: &[(&str, f64)]) -> Result<Values, ParameterError> {
        if let Some((key, _)) = given.iter().find(|(key, _)| !self.has(key)) {
            return Err(self.does_not_apply(key));
        }
        let mut values = [0.0; PARAMETERS_MAX];
        for (parameter, at) in self.places() {
            let named = given.iter().filter(|(key, _)| *key == parameter.name);
            let mut named = named.map(|(_, value)| *value);
            for place in 0..parameter.range.width() {
                let given = named.next().or(parameter.default_at(place));
                values[at + place] = self.check(parameter, given)?;
            }
        }
        Ok(values)
    }

    /// Set where the list has such a key.
    pub fn has(&self, key: &str) -> bool {
        self.list.iter().any(|parameter| parameter.name == key)
    }

    /// The parameters, each with the place of its first number in the values.
    fn places(&self) -> impl Iterator<Item = (&'static Parameter, usize)> + use<> {
        self.list.iter().scan(0, |next, parameter| {
            let at = *next;
            *next += parameter.range.width();
            Some((parameter, at))
        })
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
            let numbers = match (value, parameter.range) {
                (_, Range::Choice(names)) => vec![self.choose(parameter, names, value)?],
                (toml::Value::Integer(whole), _) => vec![*whole as f64],
                (toml::Value::Float(number), _) => vec![*number],
                (other, range) => {
                    let numbers = range.numbers(other).ok().flatten();
                    numbers.ok_or_else(|| ParameterError::NotANumber {
                        table: self.table,
                        parameter: key.clone(),
                        found: other.type_str(),
                    })?
                }
            };
            given.extend(numbers.into_iter().map(|number| (key.as_str(), number)));
        }
        self.values(&given)
    }

    /// Values as a table of the configuration.
    pub fn write(&self, values: &Values) -> toml::Table {
        self.entries(values)
            .map(|(key, value)| (key.to_owned(), value))
            .collect()
    }

    /// The keys with their values as TOML, in the order of the list.
    pub fn entries<'a>(
        &self,
        values: &'a Values,
    ) -> impl Iterator<Item = (&'static str, toml::Value)> + use<'a> {
        self.places().filter_map(|(parameter, at)| {
            let value = parameter.range.write(&values[at..])?;
            Some((parameter.name, value))
        })
    }

    /// The value of one parameter.
    ///
    /// # Panics
    /// If the list has no such parameter.
    pub fn number(&self, values: &Values, parameter: &str) -> f64 {
        self.numbers(values, parameter)[0]
    }

    /// The values from those of one parameter on.
    ///
    /// # Panics
    /// If the list has no such parameter.
    pub fn numbers<'a>(&self, values: &'a Values, parameter: &str) -> &'a [f64] {
        let found = self.places().find(|(known, _)| known.name == parameter);
        let (_, at) = found.expect("a method asks for the parameters that it lists");
        &values[at..]
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
        at.map(|at| at as f64).ok_or_else(|| ParameterError::Range {
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
        let value = given.ok_or(ParameterError::Missing {
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
            found: value.to_string(),
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
        /// The meaning of the parameter.
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
        found: String,
        /// The range.
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
        /// The type that was found.
        found: &'static str,
    },
}
