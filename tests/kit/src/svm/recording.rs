//! Recording: writes what is sent to the guard into a folder, for the prover's machine to execute once more.
//!
//! Done where `SLUICE_RECORD_INPUTS` names a folder. A record is a file of lines: the slot, the call of the guard, and every
//! account of it as it was before. Programs are written once each, and named by their hashes.

use std::{
    cell::Cell,
    collections::HashMap,
    env,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicUsize, Ordering},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use litesvm::LiteSVM;
use sha2::{Digest, Sha256};
use solana_clock::Clock;
use solana_instruction::Instruction;
use solana_pubkey::Pubkey;

/// Names the folder.
const FOLDER: &str = "SLUICE_RECORD_INPUTS";

/// Inputs that one test records: thousands of random ones would fill the disk with what is much alike.
const MOST: usize = 100;

/// Inputs that this process has recorded, and this test, which has a thread of its own.
static RECORDED: AtomicUsize = AtomicUsize::new(0);
thread_local! {
    static OF_THIS_TEST: Cell<usize> = const { Cell::new(0) };
}

/// Where inputs are written, and which programs are loaded.
pub(super) struct Recording {
    folder: PathBuf,
    programs: HashMap<Pubkey, String>,
}

impl Recording {
    /// Nothing, unless the environment asks for it.
    pub(super) fn of_environment() -> Option<Self> {
        let folder = PathBuf::from(env::var_os(FOLDER)?);
        fs::create_dir_all(&folder).expect("the folder of recorded inputs can be made");
        Some(Self {
            folder,
            programs: HashMap::new(),
        })
    }

    /// Keeps a program under its hash.
    pub(super) fn load(&mut self, id: Pubkey, program: &[u8]) {
        let hash = hex(&Sha256::digest(program));
        let file = self.folder.join(format!("{hash}.so"));
        if !file.is_file() {
            write_whole(&file, program);
        }
        self.programs.insert(id, hash);
    }

    /// Records a transaction that does nothing but call the guard.
    pub(super) fn note(&self, vm: &LiteSVM, instructions: &[Instruction]) {
        let [call] = instructions else { return };
        if call.program_id != swap_guard_interface::PROGRAM_ID {
            return;
        }
        let of_this_test = OF_THIS_TEST.get();
        if of_this_test == MOST {
            return;
        }
        OF_THIS_TEST.set(of_this_test + 1);
        let number = RECORDED.fetch_add(1, Ordering::Relaxed);
        let text = self.text(vm, call);
        let file = format!("{}-{number}.input", process::id());
        write_whole(&self.folder.join(file), text.as_bytes());
    }

    fn text(&self, vm: &LiteSVM, call: &Instruction) -> String {
        let mut text = format!("slot {}\n", vm.get_sysvar::<Clock>().slot);
        for (id, hash) in &self.programs {
            line(&mut text, &["program", &id.to_string(), hash]);
        }
        line(&mut text, &["data", &STANDARD.encode(&call.data)]);
        for meta in &call.accounts {
            let flags = match (meta.is_signer, meta.is_writable) {
                (false, false) => "read",
                (false, true) => "write",
                (true, false) => "sign",
                (true, true) => "sign-write",
            };
            line(&mut text, &["meta", &meta.pubkey.to_string(), flags]);
        }
        for meta in &call.accounts {
            let account = vm.get_account(&meta.pubkey).unwrap_or_default();
            let words = [
                "account",
                &meta.pubkey.to_string(),
                &account.owner.to_string(),
                &account.lamports.to_string(),
                if account.executable {
                    "program"
                } else {
                    "data"
                },
                &STANDARD.encode(&account.data),
            ];
            line(&mut text, &words);
        }
        text
    }
}

fn line(text: &mut String, words: &[&str]) {
    writeln!(text, "{}", words.join(" ")).expect("a string takes everything");
}

/// Writes a file that other processes see whole or not at all.
fn write_whole(file: &Path, content: &[u8]) {
    let part = file.with_extension(format!("{}.part", process::id()));
    fs::write(&part, content).expect("recorded inputs can be written");
    fs::rename(&part, file).expect("recorded inputs can be renamed");
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes everything");
        text
    })
}
