//! `GET /health/live`: answers while the process does.

use axum::http::StatusCode;

/// Whether the process answers
#[utoipa::path(
    get,
    path = "/health/live",
    tag = "health",
    responses((status = 200, description = "It does.")),
)]
pub async fn live() -> StatusCode {
    StatusCode::OK
}
