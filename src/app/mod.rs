//! What the front ends share: jobs, settings, export.
