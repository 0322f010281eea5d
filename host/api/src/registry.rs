//! The registry of compile-time plugins.

use crate::{Code, Error, ErrorKind};

/// Codes that the registry may raise.
pub mod codes {
    use super::{Code, ErrorKind};

    /// No plugin of a kind is linked.
    pub const EMPTY: Code = Code {
        id: "registry-empty",
        kind: ErrorKind::Bug,
        meaning: "The program was built without any plugin of this kind.",
        remedy: "Name each plugin crate with `use the_crate as _;` in the program that links it; a crate that is only in Cargo.toml is dropped by the linker.",
    };
    /// Two plugins share a name.
    pub const DUPLICATE: Code = Code {
        id: "registry-duplicate",
        kind: ErrorKind::Bug,
        meaning: "Two linked plugins register the same name.",
        remedy: "Remove one of the two crates from the program, or rename its plugin.",
    };
    /// A name that no plugin has.
    pub const UNKNOWN: Code = Code {
        id: "registry-unknown",
        kind: ErrorKind::Settings,
        meaning: "No plugin has the name that the manifest or a flag asks for.",
        remedy: "Use one of the names that the message lists; `capsule transports` shows them.",
    };
    /// All of them.
    pub const ALL: &[&Code] = &[&EMPTY, &DUPLICATE, &UNKNOWN];
}

/// What every plugin's descriptor has.
pub trait Descriptor: 'static {
    /// The kind in words, such as `transport`.
    const KIND: &'static str;
    /// The plugin's name.
    fn name(&self) -> &'static str;
    /// The crate that registers it.
    fn crate_name(&self) -> &'static str;
}

/// The plugins of one kind, sorted by name.
#[derive(Debug)]
pub struct Registry<D: 'static> {
    plugins: Vec<&'static D>,
}

impl<D: Descriptor> Registry<D> {
    /// All plugins of the kind that are linked into this program.
    ///
    /// # Errors
    /// None is linked, or two share a name (both crates are named).
    pub fn linked() -> Result<Self, Error>
    where
        D: inventory::Collect,
    {
        Self::of(inventory::iter::<D>)
    }

    /// A registry of these plugins.
    ///
    /// # Errors
    /// As for [`Registry::linked`].
    pub fn of(plugins: impl IntoIterator<Item = &'static D>) -> Result<Self, Error> {
        let mut plugins: Vec<_> = plugins.into_iter().collect();
        // The crate's name too, so that the message about a duplicate does not depend on link order.
        plugins.sort_by_key(|plugin| (plugin.name(), plugin.crate_name()));
        if plugins.is_empty() {
            return Err(Error::new(
                &codes::EMPTY,
                format!("no {} is linked into this program", D::KIND),
            ));
        }
        for pair in plugins.windows(2) {
            if pair[0].name() == pair[1].name() {
                let (kind, name) = (D::KIND, pair[0].name());
                let (first, second) = (pair[0].crate_name(), pair[1].crate_name());
                let message = format!("two crates register the {kind} `{name}`: {first} and {second}");
                return Err(Error::new(&codes::DUPLICATE, message));
            }
        }
        Ok(Self { plugins })
    }

    /// The plugin of this name.
    ///
    /// # Errors
    /// There is none; the message lists what there is, the hint has the nearest spelling.
    pub fn get(&self, name: &str) -> Result<&'static D, Error> {
        if let Some(plugin) = self.plugins.iter().find(|plugin| plugin.name() == name) {
            return Ok(plugin);
        }
        let names: Vec<_> = self.names().collect();
        let message = format!("no {} is called `{name}`; there are: {}", D::KIND, names.join(", "));
        let error = Error::new(&codes::UNKNOWN, message);
        Err(match nearest(name, names) {
            Some(near) => error.hint(format!("Did you mean `{near}`?")),
            None => error,
        })
    }

    /// The plugins, by name.
    pub fn iter(&self) -> impl Iterator<Item = &'static D> + '_ {
        self.plugins.iter().copied()
    }

    /// The names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.plugins.iter().map(|plugin| plugin.name())
    }
}

/// Bytes of the longest name that is compared with others.
const LONGEST_SLIP: usize = 256;

/// The name among `known` that `wanted` is most likely a misspelling of, if any is close.
pub fn nearest<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // What is this long is no slip, and comparing takes memory for each of its letters.
    if wanted.len() > LONGEST_SLIP {
        return None;
    }
    let close = known
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(wanted, name), name));
    let allowed = 1 + wanted.chars().count() / 4;
    close
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Registers a plugin: `register! { TransportDescriptor { name: "echo", … } }`, all fields but `crate_name`.
///
/// The crate must also be *named* by the program (`use the_crate as _;`), or the linker drops it with its registration.
#[macro_export]
macro_rules! register {
    ($descriptor:ident { $($field:ident : $value:expr),* $(,)? }) => {
        $crate::__inventory::submit! {
            $crate::$descriptor { crate_name: env!("CARGO_PKG_NAME"), $($field: $value),* }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Named(&'static str, &'static str);

    impl Descriptor for Named {
        const KIND: &'static str = "transport";

        fn name(&self) -> &'static str {
            self.0
        }

        fn crate_name(&self) -> &'static str {
            self.1
        }
    }

    static CLAUDE: Named = Named("claude", "theirs");
    static HTTP: Named = Named("http", "ours");
    static HTTP_TOO: Named = Named("http", "somebody-elses");

    #[test]
    fn what_is_too_long_for_a_slip_is_near_to_nothing() {
        let long = "x".repeat(LONGEST_SLIP + 1);
        assert_eq!(nearest(&long, [long.as_str()]), None);
        assert_eq!(nearest(&long[1..], [&long[1..]]), Some(&long[1..]));
    }

    #[test]
    fn r_01_an_empty_registry_says_how_plugins_get_lost() {
        let error = Registry::<Named>::of([]).unwrap_err();
        assert_eq!(
            (error.code, error.message.as_str()),
            ("registry-empty", "no transport is linked into this program")
        );
        assert!(error.hint.contains("use the_crate as _;"), "{}", error.hint);
    }

    #[test]
    fn r_02_two_plugins_of_one_name_are_refused_naming_both_crates() {
        let error = Registry::of([&HTTP_TOO, &CLAUDE, &HTTP]).unwrap_err();
        assert_eq!(
            error.message,
            "two crates register the transport `http`: ours and somebody-elses"
        );
    }

    #[test]
    fn r_02_an_unknown_name_lists_what_there_is_and_the_nearest() {
        let registry = Registry::of([&HTTP, &CLAUDE]).unwrap();
        let error = registry.get("cluade").unwrap_err();
        assert_eq!(
            error.message,
            "no transport is called `cluade`; there are: claude, http"
        );
        assert_eq!(error.hint, "Did you mean `claude`?");
        assert_eq!(registry.get("gemini").unwrap_err().hint, codes::UNKNOWN.remedy);
        assert_eq!(registry.get("http").unwrap().crate_name(), "ours");
    }
}
