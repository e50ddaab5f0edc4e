//! Fixed part of a problem document: status, code, title, and whether a retry may succeed.

use axum::http::StatusCode;

use super::code::ProblemCode;

/// The fixed part of a problem.
pub(super) struct Problem {
    pub(super) status: StatusCode,
    pub(super) code: ProblemCode,
    pub(super) title: &'static str,
    pub(super) retryable: bool,
}

/// A problem that the same request will meet again.
pub(super) const fn problem(status: StatusCode, code: ProblemCode, title: &'static str) -> Problem {
    Problem {
        status,
        code,
        title,
        retryable: false,
    }
}

/// A problem that may have passed when the same request comes again.
pub(super) const fn passing(status: StatusCode, code: ProblemCode, title: &'static str) -> Problem {
    Problem {
        status,
        code,
        title,
        retryable: true,
    }
}
