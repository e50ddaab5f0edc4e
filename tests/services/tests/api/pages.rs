//! Pages: what they load and link to is answered by this server, under a policy that allows no other host.

use std::io::Read;

use reqwest::{Response, Url, header};

use crate::client::Client;

/// What the pages may load.
const POLICY: &str = "default-src 'self'; img-src 'self' data:;";

impl Client {
    /// The answer to a page's request, which must be well.
    async fn loaded(&self, path: &str) -> Response {
        let request = self.http.get(format!("{}{path}", self.harness.url));
        let response = request.send().await.expect("an answer");
        assert_eq!(response.status(), 200, "{path}");
        response
    }
}

/// The values of the attributes by which a page loads or links to something.
fn references(html: &str) -> Vec<&str> {
    let after = |attribute| html.split(attribute).skip(1);
    let values = after(" src=\"").chain(after(" href=\""));
    values
        .filter_map(|rest: &str| rest.split('"').next())
        .collect()
}

/// Where the links of a Markdown text lead to.
fn links(markdown: &str) -> Vec<&str> {
    let rests = markdown.split("](").skip(1);
    rests.filter_map(|rest| rest.split(')').next()).collect()
}

#[tokio::test]
async fn the_reference_loads_everything_from_this_server() {
    let client = Client::start().await;
    let page = client.loaded("/docs").await;
    assert_eq!(
        page.headers()[header::CONTENT_TYPE],
        "text/html; charset=utf-8"
    );
    let policy = page.headers()[header::CONTENT_SECURITY_POLICY].to_str();
    assert!(policy.is_ok_and(|policy| policy.starts_with(POLICY)));
    let html = page.text().await.expect("a text");
    assert!(!html.contains("://"), "another host is named: {html}");
    let references = references(&html);
    assert!(references.len() >= 6, "{references:?}");
    for path in references {
        if path != "data:," {
            assert!(path.starts_with('/'), "{path}");
            client.loaded(path).await;
        }
    }
    let start = client.loaded("/docs/start.js").await.text().await;
    assert!(start.is_ok_and(|start| start.contains("\"/openapi.json\"") && !start.contains("://")));
}

#[tokio::test]
async fn the_script_of_the_reference_arrives_whole() {
    let client = Client::start().await;
    for (path, media_type, part) in [
        ("/docs/swagger-ui.js", "text/javascript", "SwaggerUIBundle"),
        ("/docs/swagger-ui.css", "text/css", ".swagger-ui"),
    ] {
        let response = client.loaded(path).await;
        let headers = response.headers();
        assert_eq!(headers[header::CONTENT_ENCODING], "gzip", "{path}");
        let named = headers[header::CONTENT_TYPE].to_str().expect("a text");
        assert!(named.starts_with(media_type), "{named}");
        let packed = response.bytes().await.expect("a body");
        let mut unpacked = String::new();
        // The decoder compares checksum and length with those at the end of the file.
        let read = flate2::read::GzDecoder::new(&packed[..]).read_to_string(&mut unpacked);
        read.expect("a whole file");
        assert!(unpacked.contains(part), "{path}");
    }
}

#[tokio::test]
async fn every_link_for_language_models_leads_somewhere() {
    let client = Client::start().await;
    let list = client.loaded("/llms.txt").await.text().await;
    let list = list.expect("a text");
    let listed = links(&list);
    assert!(listed.len() >= 8, "{list}");
    let mut followed = 0;
    for path in listed {
        let body = client.loaded(path).await.text().await.expect("a text");
        assert!(body.len() > 100, "{path}");
        let place = Url::parse(&format!("http://localhost{path}")).expect("a path");
        for link in links(&body).into_iter().filter(|_| path.ends_with(".md")) {
            let leads_to = place.join(link).expect("a link");
            // What is elsewhere is named whole, and no test's matter.
            if leads_to.host_str() == place.host_str() {
                client.loaded(leads_to.path()).await;
                followed += 1;
            }
        }
    }
    assert!(followed >= 3, "{followed} links between documents");
    assert_eq!(client.get("/docs/none.md").await.code(), "no_route");
}
