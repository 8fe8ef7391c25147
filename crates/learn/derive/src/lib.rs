//! `#[derive(Module)]`: the parameters of a struct are those of its fields, by their names.
//!
//! ```ignore
//! #[derive(Module)]
//! struct Net {
//!     first: Dense,
//!     second: Dense,
//!     #[module(skip)]
//!     labels: Vec<String>,
//! }
//! ```
//!
//! The parameters are called `first.weight`, `first.bias`, `second.weight` and so on. Fields without a name
//! are called by their position, and a variant of an enum adds nothing to the name. `#[module(skip)]` leaves a
//! field out, `#[module(rename = "..")]` calls it otherwise, and `#[module(flatten)]` leaves its name out of those of
//! its parameters.
//!
//! What a derive writes names the trait by its path, and a macro of this kind cannot know which crates its caller
//! has. So there are two derives, alike but for that path: each crate that has the trait re-exports its own as
//! `Module`.

#![forbid(unsafe_code)]

use proc_macro::TokenStream;
use proc_macro2::TokenStream as Tokens;
use quote::{format_ident, quote};
use syn::{Data, DeriveInput, Error, Field, Fields, LitStr, Result, parse_macro_input};

/// Implements `Module`: the parameters of a struct or an enum are those of its fields.
#[proc_macro_derive(Module, attributes(module))]
pub fn derive_module(input: TokenStream) -> TokenStream {
    derive(input, &quote!(::loopwright_nn))
}

/// The same for programs that know the crate `loopwright` only, which re-exports it as `nn::Module`.
#[proc_macro_derive(ModuleOfLoopwright, attributes(module))]
pub fn derive_module_of_loopwright(input: TokenStream) -> TokenStream {
    derive(input, &quote!(::loopwright::nn))
}

fn derive(input: TokenStream, nn: &Tokens) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand(&input, nn)
        .unwrap_or_else(|error| error.to_compile_error())
        .into()
}

/// The implementation; `nn` is the path of the module that has the trait.
fn expand(input: &DeriveInput, nn: &Tokens) -> Result<Tokens> {
    let arms = match &input.data {
        Data::Struct(data) => vec![arm(&quote!(Self), &data.fields, nn)?],
        Data::Enum(data) => {
            let variants = data.variants.iter().map(|variant| {
                let name = &variant.ident;
                arm(&quote!(Self::#name), &variant.fields, nn)
            });
            variants.collect::<Result<Vec<_>>>()?
        }
        Data::Union(data) => {
            let message =
                "a module is a struct or an enum: which field of a union is in use cannot be known";
            return Err(Error::new(data.union_token.span, message));
        }
    };
    let name = &input.ident;
    let mut generics = input.generics.clone();
    for parameter in generics.type_params_mut() {
        parameter.bounds.push(syn::parse_quote!(#nn::Module));
    }
    let (implement, types, conditions) = generics.split_for_impl();
    let body = match arms.is_empty() {
        true => quote!(match *self {}),
        false => quote!(match self { #(#arms)* }),
    };
    Ok(quote! {
        impl #implement #nn::Module for #name #types #conditions {
            fn collect(&self, found: &mut #nn::Collector) {
                #body
            }
        }
    })
}

/// The fields of a struct or a variant, each shown to the collector.
fn arm(pattern: &Tokens, fields: &Fields, nn: &Tokens) -> Result<Tokens> {
    let mut bindings = Vec::new();
    let mut shown = Vec::new();
    for (at, field) in fields.iter().enumerate() {
        let options = Options::of(field)?;
        let variable = format_ident!("field_{at}");
        let place = match &field.ident {
            Some(name) => quote!(#name),
            None => {
                let at = syn::Index::from(at);
                quote!(#at)
            }
        };
        if options.skip {
            bindings.push(quote!(#place: _));
            continue;
        }
        if options.flatten {
            bindings.push(quote!(#place: #variable));
            shown.push(quote!(#nn::Module::collect(#variable, found);));
            continue;
        }
        let called = match (&options.rename, &field.ident) {
            (Some(name), _) => name.value(),
            (None, Some(name)) => name.to_string().trim_start_matches("r#").to_owned(),
            (None, None) => at.to_string(),
        };
        bindings.push(quote!(#place: #variable));
        shown.push(quote!(found.field(#called, #variable);));
    }
    Ok(quote!(#pattern { #(#bindings),* } => { #(#shown)* }))
}

/// What `#[module(..)]` says about a field.
#[derive(Default)]
struct Options {
    skip: bool,
    flatten: bool,
    rename: Option<LitStr>,
}

impl Options {
    fn of(field: &Field) -> Result<Options> {
        let mut options = Options::default();
        for attribute in &field.attrs {
            if !attribute.path().is_ident("module") {
                continue;
            }
            attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("skip") {
                    options.skip = true;
                    return Ok(());
                }
                if meta.path.is_ident("flatten") {
                    options.flatten = true;
                    return Ok(());
                }
                if meta.path.is_ident("rename") {
                    options.rename = Some(meta.value()?.parse()?);
                    return Ok(());
                }
                Err(meta.error("expected `skip`, `flatten` or `rename = \"..\"`"))
            })?;
        }
        Ok(options)
    }
}
