//! Examples: what each operation is asked and answers, put into the document from one file.
//!
//! A test of the whole API sends what the file asks, in an order in which it makes sense, and holds what is answered and what
//! the file answers to the document's own schemas. The answers are a recording of that test.

use std::{collections::BTreeMap, sync::LazyLock};

use serde::Deserialize;
use serde_json::Value;
use utoipa::openapi::{
    Content, OpenApi, PathItem, RefOr,
    path::{Operation, ParameterBuilder},
};

/// What an operation is asked, and what it answers.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Example {
    /// Parameters of path, query and head by their names.
    #[serde(default)]
    parameters: BTreeMap<String, Value>,
    /// The body of the request.
    body: Option<Value>,
    /// The body of the answer; of a stream its first message.
    answer: Option<Value>,
}

/// The examples by the names of their operations.
///
/// # Panics
/// Never: a test reads the file.
static EXAMPLES: LazyLock<BTreeMap<String, Example>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("examples.json")).expect("the examples are well-formed")
});

/// Adds the examples to the operations of a document.
pub fn add(document: &mut OpenApi) {
    for path in document.paths.paths.values_mut() {
        for operation in operations(path) {
            let name = operation.operation_id.as_deref();
            if let Some(example) = name.and_then(|name| EXAMPLES.get(name)) {
                exemplify(operation, example);
            }
        }
    }
}

fn operations(path: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    let PathItem {
        get,
        put,
        post,
        delete,
        patch,
        ..
    } = path;
    [get, put, post, delete, patch].into_iter().flatten()
}

fn exemplify(operation: &mut Operation, example: &Example) {
    let parameters = operation.parameters.take();
    operation.parameters = parameters.map(|parameters| {
        let with_example = |parameter: utoipa::openapi::path::Parameter| {
            let value = example.parameters.get(&parameter.name).cloned();
            ParameterBuilder::from(parameter).example(value).build()
        };
        parameters.into_iter().map(with_example).collect()
    });
    if let Some(body) = &mut operation.request_body {
        put(body.content.values_mut(), example.body.as_ref());
    }
    for (status, response) in &mut operation.responses.responses {
        if let (true, RefOr::T(response)) = (status.starts_with('2'), response) {
            put(response.content.values_mut(), example.answer.as_ref());
        }
    }
}

fn put<'a>(contents: impl Iterator<Item = &'a mut Content>, example: Option<&Value>) {
    for content in contents {
        content.example = example.cloned();
    }
}
