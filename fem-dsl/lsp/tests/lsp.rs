//! The language server as a client sees it: conversations over pipes.

#[path = "lsp/completion.rs"]
mod completion;
#[path = "lsp/conversation.rs"]
mod conversation;
#[path = "lsp/grammars.rs"]
mod grammars;
#[path = "lsp/robust.rs"]
mod robust;
#[path = "lsp/session.rs"]
mod session;
