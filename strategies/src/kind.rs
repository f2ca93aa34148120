//! A method as data: an entry of a list of methods, with values for its parameters. Codecs, topologies,
//! optimizers, corrections and aggregation rules are such methods: each has an entry beside its code,
//! and a line in its list.

use crate::parameter::{PARAMETERS_MAX, Parameter, ParameterError, Parameters, Range, Values};

/// An entry of a list of methods.
pub trait Spec: 'static {
    /// The key of the configuration that names a method of the list.
    const KEY: &'static str;

    /// All methods of the list.
    fn list() -> &'static [&'static Self];

    /// The method of a configuration that names none.
    fn usual() -> &'static Self {
        Self::list()[0]
    }

    /// Its name and its parameters.
    fn keys(&self) -> Parameters;

    /// The parameter whose range depends on other parameters and does not contain its value.
    fn unfit(_: &Kind<Self>) -> Option<&'static str>
    where
        Self: Sized,
    {
        None
    }
}

/// A method of a list with its parameters, all within their ranges.
#[derive(Clone, Copy)]
pub struct Kind<S: 'static> {
    spec: &'static S,
    values: Values,
}

impl<S> Kind<S> {
    /// Its entry in the list.
    pub const fn spec(&self) -> &'static S {
        self.spec
    }
}

impl<S: Spec> Kind<S> {
    /// A method of the list with these parameters; the others get their defaults.
    ///
    /// # Errors
    /// When there is no such method, or a parameter is missing, unknown or out of its range.
    ///
    /// ```
    /// use murmurate_strategies::compress::CodecKind;
    /// use murmurate_strategies::topology::TopologyKind;
    /// assert!(CodecKind::new("top-k", &[("density", 0.01)]).is_ok());
    /// assert!(CodecKind::new("top-k", &[("density", 0.0)]).is_err());
    /// assert!(TopologyKind::new("base-k", &[("degree", 2.0)]).is_ok());
    /// assert!(TopologyKind::new("ring", &[("degree", 2.0)]).is_err());
    /// ```
    pub fn new(name: &str, given: &[(&str, f64)]) -> Result<Self, ParameterError> {
        Self::of(Self::find(name)?, given)
    }

    /// As [`Kind::new`], for an entry of the list.
    ///
    /// # Errors
    /// When a parameter is missing, unknown or out of its range.
    pub fn of(spec: &'static S, given: &[(&str, f64)]) -> Result<Self, ParameterError> {
        let values = spec.keys().values(given)?;
        Ok(Self { spec, values })
    }

    /// A method of the list with the parameters that a table of the configuration gives.
    ///
    /// # Errors
    /// As [`Kind::new`], and when a value has the wrong type.
    pub fn from_table(name: &str, table: &toml::Table) -> Result<Self, ParameterError> {
        let spec = Self::find(name)?;
        let values = spec.keys().read(table)?;
        Ok(Self { spec, values })
    }

    fn find(name: &str) -> Result<&'static S, ParameterError> {
        let mut all = S::list().iter().copied();
        all.find(|spec| spec.keys().method == name)
            .ok_or_else(|| ParameterError::UnknownMethod {
                key: S::KEY,
                found: name.to_owned(),
            })
    }

    /// Its parameters as TOML.
    pub fn to_table(&self) -> toml::Table {
        self.spec.keys().write(&self.values)
    }

    /// Its name in the configuration.
    pub fn name(&self) -> &'static str {
        self.spec.keys().method
    }

    /// The values of its parameters, in the order of its entry.
    pub fn values(&self) -> &[f64] {
        &self.values[..self.spec.keys().list.len()]
    }

    /// Its parameters as TOML, in the order of its entry.
    pub fn entries(&self) -> impl Iterator<Item = (&'static str, toml::Value)> {
        self.spec.keys().entries(&self.values)
    }

    /// Set where its entry lists such a parameter.
    pub fn has(&self, parameter: &str) -> bool {
        self.spec.keys().has(parameter)
    }

    /// The two values of a parameter that its entry lists as a pair.
    ///
    /// # Panics
    /// If the entry lists no such parameter.
    pub fn pair(&self, parameter: &str) -> [f64; 2] {
        let numbers = self.spec.keys().numbers(&self.values, parameter);
        [numbers[0], numbers[1]]
    }

    /// The value of a parameter that its entry lists.
    ///
    /// # Panics
    /// If the entry lists no such parameter.
    pub fn number(&self, parameter: &str) -> f64 {
        self.spec.keys().number(&self.values, parameter)
    }

    /// As [`Kind::number`], of a parameter that is a whole number.
    ///
    /// # Panics
    /// If the entry lists no such parameter.
    pub fn count(&self, parameter: &str) -> usize {
        self.number(parameter) as usize
    }

    /// As [`Kind::number`], of a parameter that is a name.
    ///
    /// # Panics
    /// If the entry lists no such parameter, or it is a number.
    pub fn choice(&self, parameter: &str) -> &'static str {
        let found = self.spec.keys().list.iter().find(|p| p.name == parameter);
        match found.map(|parameter| parameter.range) {
            Some(Range::Choice(names) | Range::Names(names)) => names[self.count(parameter)],
            _ => panic!("`{parameter}` of `{}` is no name", self.name()),
        }
    }

    /// The same method with another value of one parameter.
    ///
    /// # Panics
    /// If the entry lists no such parameter, or the value is outside its range.
    #[must_use]
    pub fn with(&self, parameter: &str, value: f64) -> Self {
        let own = self.spec.keys();
        let range = own.list.iter().find(|p| p.name == parameter);
        let range = range.expect("a method has the parameter that is set").range;
        assert!(range.contains(value), "the caller keeps to the range");
        let at = PARAMETERS_MAX - own.numbers(&self.values, parameter).len();
        let mut values = self.values;
        values[at] = value;
        Self {
            spec: self.spec,
            values,
        }
    }

    /// Another method of the list, with those of this one's parameters that it has too.
    ///
    /// # Panics
    /// If there is none of that name, or it needs a parameter that this one does not have.
    pub(crate) fn sibling(&self, name: &str) -> Self {
        let spec = Self::find(name);
        let takes = |p: &&Parameter| {
            let other = spec.as_ref().map_or(&[][..], |spec| spec.keys().list);
            other.iter().any(|q| q.name == p.name)
        };
        let own = self.spec.keys().list.iter().filter(takes);
        let given: Vec<_> = own.map(|p| (p.name, self.number(p.name))).collect();
        Self::new(name, &given).expect("a method lists others that its parameters fit")
    }
}

impl<S: Spec> PartialEq for Kind<S> {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name() && self.values == other.values
    }
}

impl<S: Spec> core::fmt::Debug for Kind<S> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let mut entry = f.debug_struct(self.name());
        for (name, value) in self.entries() {
            entry.field(name, &value);
        }
        entry.finish()
    }
}
