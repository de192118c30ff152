//! `typed`: a form → structs of its parameters and of its auxiliary data, as items.
//!
//! ```text
//! param f = 4; param g: vector = x;     struct Params<const DIM: usize> { f: f64, g: [f64; DIM] }
//! aux kappa: scalar on cells;           struct Aux { kappa: Function<f64> }
//! field u: vector;                      mod field { struct u: TypedField<[f64; DIM]> }
//!                                       mod param { const f: &str = "f"; … }  mod aux { … }
//! ```
//!
//! For a form that is valid in several dimensions, shapes that depend on the dimension make its struct generic in it.
//! Names and shapes that the form does not have then fail to compile.

use fem_dsl::ast::{self, FormItemKind};
use fem_dsl::check::DIMENSIONS;
use fem_dsl::point::{PointForm, Shape};
use fem_dsl::program::Program;
use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::{format_ident, quote};
use std::collections::BTreeSet;

/// Returns a name of the language as one of Rust.
fn ident(name: &str) -> Ident {
    crate::keywords::ident(name, Span::call_site())
}

/// A field of a struct: its name, its type, and its documentation.
struct Field {
    name: String,
    ty: Type,
    doc: String,
}

/// A type, and true if it depends on the dimension.
struct Type {
    tokens: TokenStream,
    generic: bool,
}

/// Returns the structs of a form of a program with the trait implementations for the facade; then its names.
pub(crate) fn structs(program: &Program, name: &str) -> TokenStream {
    let forms: Vec<PointForm> =
        DIMENSIONS.into_iter().filter_map(|dim| program.point_form(name, dim).ok()).collect();
    let mut items = TokenStream::new();
    let Some(first) = forms.first() else { return items };
    let (own_params, own_aux) = (own(first, StructKind::Params), own(first, StructKind::Aux));
    if !own_params.is_empty() {
        items.extend(params(&forms, first));
    }
    if !own_aux.is_empty() {
        items.extend(data(&forms, first));
    }
    items.extend(fields(&forms, first));
    let params: Vec<String> = own_params.iter().map(|&at| first.params[at].name.clone()).collect();
    items.extend(texts("param", "The names of the form's parameters.", &params));
    let aux: Vec<String> = own_aux.iter().map(|&at| first.aux[at].name.clone()).collect();
    items.extend(texts("aux", "The names of the form's auxiliary data.", &aux));
    items
}

/// The kind of struct.
#[derive(Clone, Copy)]
enum StructKind {
    Params,
    Aux,
}

/// Returns the indices of a form's parameters or data, without those of its time derivatives.
fn own(form: &PointForm, of: StructKind) -> Vec<usize> {
    let count = match of {
        StructKind::Params => form.params.len(),
        StructKind::Aux => form.aux.len(),
    };
    let made = |at: usize| {
        form.rates.iter().any(|rate| match of {
            StructKind::Params => rate.param == at,
            StructKind::Aux => rate.aux == at,
        })
    };
    (0..count).filter(|&at| !made(at)).collect()
}

/// Returns `pub mod field`, with a type for each field that defines the type of its values.
fn fields(forms: &[PointForm], first: &PointForm) -> TokenStream {
    // User-chosen type names, which shadow nothing in this module.
    let impls = first.fields.iter().enumerate().map(|(at, field)| {
        let shapes: Vec<Shape> = forms.iter().map(|form| form.fields[at].shape).collect();
        let Type { tokens, generic } = ty(&shapes);
        let (bound, _) = generics(generic);
        let (name, own) = (&field.name, ident(&field.name));
        quote! {
            impl ::weakform::FieldName for field::#own {
                fn name(&self) -> &str { #name }
            }
            impl #bound ::weakform::TypedField<#tokens> for field::#own {}
        }
    });
    let docs = first.fields.iter().map(|field| format!("The field `{}`.", field.name));
    let names = first.fields.iter().map(|field| ident(&field.name));
    quote! {
        /// The form's fields.
        #[allow(dead_code, non_camel_case_types)]
        pub mod field {
            #(#[doc = #docs] #[derive(Clone, Copy, Debug)] pub struct #names;)*
        }
        #(#impls)*
    }
}

/// Returns only the names of an invalid form, so that their uses cause no consequential errors.
pub(crate) fn names(form: &ast::Form) -> TokenStream {
    let (mut fields, mut params, mut aux) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for item in &form.items {
        match &item.kind {
            FormItemKind::Field { name, .. } => fields.insert(name.name.as_str()),
            FormItemKind::Param { name, .. } => params.insert(name.name.as_str()),
            FormItemKind::Aux { name, .. } => aux.insert(name.name.as_str()),
            _ => false,
        };
    }
    let known = |names: BTreeSet<&'_ str>| -> Vec<String> {
        names.into_iter().filter(|name| !name.is_empty()).map(str::to_owned).collect()
    };
    let fields = known(fields);
    let types: Vec<Ident> = fields.iter().map(|name| ident(name)).collect();
    let mut items = quote! {
        #[allow(dead_code, non_camel_case_types, missing_docs)]
        pub mod field { #(#[derive(Clone, Copy, Debug)] pub struct #types;)* }
        #(
            impl ::weakform::FieldName for field::#types {
                fn name(&self) -> &str { #fields }
            }
            impl<V: ::weakform::Value> ::weakform::TypedField<V> for field::#types {}
        )*
    };
    items.extend(texts("param", "Parameters.", &known(params)));
    items.extend(texts("aux", "Auxiliary data.", &known(aux)));
    items
}

/// Returns `pub mod …`, with the text of each name.
fn texts(module: &str, doc: &str, names: &[String]) -> Option<TokenStream> {
    let (module, own) = (ident(module), names.iter().map(|name| ident(name)));
    let docs = names.iter().map(|name| format!("`{name}`"));
    (!names.is_empty()).then(|| {
        quote! {
            #[doc = #doc]
            #[allow(dead_code, non_upper_case_globals)]
            pub mod #module { #(#[doc = #docs] pub const #own: &str = #names;)* }
        }
    })
}

fn params(forms: &[PointForm], first: &PointForm) -> TokenStream {
    let mut fields = Vec::new();
    let mut generic = false;
    let places = own(first, StructKind::Params);
    for &at in &places {
        let param = &first.params[at];
        let shapes: Vec<Shape> = forms.iter().map(|form| form.params[at].shape).collect();
        generic |= forms.iter().any(|form| form.params[at].value != param.value);
        let doc = format!("The parameter `{}`.", param.name);
        fields.push(Field { name: param.name.clone(), ty: ty(&shapes), doc });
    }
    generic |= fields.iter().any(|field| field.ty.generic);
    let (bound, of) = generics(generic);
    let declared = declare("Params", "The parameters of the form.", &fields, &bound);
    // Without a dimension, there is one struct.
    let forms = if generic { forms } else { &forms[..1] };
    let defaults = forms.iter().map(|form| {
        let dim = Literal::usize_unsuffixed(form.dim);
        let to = generic.then(|| quote!(<#dim>));
        let own = || places.iter().map(|&at| &form.params[at]);
        let names = own().map(|param| ident(&param.name));
        let values = own().map(|param| literal(param.shape, &param.value));
        quote! {
            /// The form's own values.
            impl ::core::default::Default for Params #to {
                fn default() -> Self { Self { #(#names: #values,)* } }
            }
        }
    });
    let names = fields.iter().map(|field| &field.name);
    let own = fields.iter().map(|field| ident(&field.name));
    quote! {
        #[derive(Clone, Copy, Debug, PartialEq)]
        #declared
        #(#defaults)*
        impl #bound ::weakform::Params for Params #of {
            fn visit(&self, each: &mut dyn ::core::ops::FnMut(&'static str, &[f64])) {
                #(each(#names, ::weakform::Value::components(&self.#own));)*
            }
        }
    }
}

fn data(forms: &[PointForm], first: &PointForm) -> TokenStream {
    let fields: Vec<Field> = own(first, StructKind::Aux)
        .into_iter()
        .map(|at| {
            let shapes: Vec<Shape> = forms.iter().map(|form| form.aux[at].shape).collect();
            let name = first.aux[at].name.clone();
            let doc = format!("The data `{name}`, as a function of the place.");
            let Type { tokens, generic } = ty(&shapes);
            let tokens = quote!(::weakform::Function<#tokens>);
            Field { name, ty: Type { tokens, generic }, doc }
        })
        .collect();
    let (bound, of) = generics(fields.iter().any(|field| field.ty.generic));
    let declared = declare("Aux", "The auxiliary data of the form.", &fields, &bound);
    let names = fields.iter().map(|field| &field.name);
    let own = fields.iter().map(|field| ident(&field.name));
    quote! {
        #declared
        impl #bound ::weakform::Data for Aux #of {
            fn visit(
                self,
                each: &mut dyn ::core::ops::FnMut(&'static str, ::weakform::DataValues),
            ) {
                #(each(#names, self.#own.written(#names));)*
            }
        }
    }
}

/// Returns the generic parameters of a struct, if any, and the arguments of its name.
fn generics(generic: bool) -> (Option<TokenStream>, Option<TokenStream>) {
    (generic.then(|| quote!(<const DIM: usize>)), generic.then(|| quote!(<DIM>)))
}

fn declare(name: &str, doc: &str, fields: &[Field], bound: &Option<TokenStream>) -> TokenStream {
    let name = format_ident!("{name}");
    let docs = fields.iter().map(|field| &field.doc);
    let names = fields.iter().map(|field| ident(&field.name));
    let types = fields.iter().map(|field| &field.ty.tokens);
    quote! {
        #[doc = #doc]
        pub struct #name #bound {
            #(#[doc = #docs] pub #names: #types,)*
        }
    }
}

/// Returns the type of a value with these shapes in the dimensions of the form.
fn ty(shapes: &[Shape]) -> Type {
    let generic = shapes.windows(2).any(|pair| pair[0] != pair[1]);
    let extent = |n: usize| {
        let n = Literal::usize_unsuffixed(n);
        if generic { quote!(DIM) } else { quote!(#n) }
    };
    let tokens = match shapes[0] {
        Shape::Scalar => quote!(f64),
        Shape::Vector(n) => {
            let n = extent(n);
            quote!([f64; #n])
        }
        Shape::Matrix(n, m) => {
            let (n, m) = (extent(n), extent(m));
            quote!([[f64; #m]; #n])
        }
    };
    Type { tokens, generic }
}

/// Returns a value of a shape.
fn literal(shape: Shape, value: &[f64]) -> TokenStream {
    match shape {
        Shape::Scalar => {
            let value = value[0];
            quote!(#value)
        }
        Shape::Vector(_) => quote!([#(#value),*]),
        Shape::Matrix(_, m) => {
            let rows = value.chunks(m);
            let rows = rows.map(|row| quote!([#(#row),*]));
            quote!([#(#rows),*])
        }
    }
}
