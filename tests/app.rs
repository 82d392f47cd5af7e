//! What lies under the window: documents, settings, sessions. No window is opened.

mod document;
mod document_edits;
mod document_files;
mod document_random;
