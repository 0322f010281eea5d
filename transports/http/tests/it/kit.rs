//! The conformance kit over this transport.

use capsule_transport_kit::assert_conforms;

use crate::fixture::Http;

#[tokio::test(flavor = "multi_thread")]
async fn the_transport_conforms() {
    assert_conforms(&Http).await;
}
