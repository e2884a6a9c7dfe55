//! Processes every document of some files: in parallel, in order, and with bounded memory.

use crate::files::{self, InputSource};
use crate::input::{Document, Notation, Start};
use crate::lists::{self, DocumentPart};
use crate::problem::Problem;
use crate::progress::ByteProgress;
use crate::split::{self, InputEnd};
use rayon::prelude::*;
use std::io::Read;
use std::sync::Arc;

/// The size of a block of a large file.
const BLOCK: usize = 4 << 20;
/// The number and total size of small files in a group.
const GROUP: (usize, u64) = (1024, 16 << 20);
/// From this number on, the documents of one file are distributed over the cores.
const SHARED: usize = 8;

/// Calls a function with every document, and passes on the results in document order. While one part is
/// processed, the results of the previous part are passed on and the next part is read.
pub(crate) fn each_document<T: Send>(
    sources: &[InputSource],
    work: impl Fn(&Document<'_>) -> T + Sync,
    mut hand_on: impl FnMut(T) + Send,
) -> Vec<Problem> {
    let mut problems = Vec::new();
    let progress = ByteProgress::new(sources);
    let work = |cut: &DocumentPart<'_>| {
        let result = cut.with(&work);
        progress.advance(cut.len());
        result
    };
    let mut feed = Feed {
        sources,
        blocks: None,
    };
    // The first part is read alone; from then on, reading overlaps with work.
    let mut current = feed.next();
    let mut done = Vec::new();
    while let Some(part) = current {
        // Only one of the two closures passes results on, so their order is that of the documents.
        let (results, next) = rayon::join(
            || part.run(&work),
            || {
                for result in done.drain(..) {
                    match result {
                        Ok(result) => hand_on(result),
                        Err(problem) => problems.push(problem),
                    }
                }
                feed.next()
            },
        );
        (done, current) = (results, next);
    }
    for result in done {
        match result {
            Ok(result) => hand_on(result),
            Err(problem) => problems.push(problem),
        }
    }
    problems
}

/// A unit of work.
enum WorkUnit<'s> {
    /// Small files, read by the worker.
    Files(&'s [InputSource]),
    /// Complete documents of a large file.
    Block(Block),
    /// An input that cannot be read.
    Problem(Problem),
}

struct Block {
    file: Arc<str>,
    bytes: Vec<u8>,
    notation: Notation,
    start: Start,
    /// The known ends of its documents.
    ends: Vec<usize>,
}

impl WorkUnit<'_> {
    fn run<T: Send>(self, work: &(impl Fn(&DocumentPart<'_>) -> T + Sync)) -> Vec<Result<T, Problem>> {
        match self {
            // A single file is not distributed here; its documents are.
            WorkUnit::Files([source]) => file(source, work),
            WorkUnit::Files(sources) => {
                let done: Vec<_> = sources.par_iter().map(|source| file(source, work)).collect();
                done.into_iter().flatten().collect()
            }
            WorkUnit::Block(block) => {
                let (documents, problems) = split::split_at(
                    &block.file,
                    &block.bytes,
                    block.notation,
                    block.start,
                    &block.ends,
                );
                all(documents, problems, work)
            }
            WorkUnit::Problem(problem) => vec![Err(problem)],
        }
    }
}

fn file<T: Send>(
    source: &InputSource,
    work: &(impl Fn(&DocumentPart<'_>) -> T + Sync),
) -> Vec<Result<T, Problem>> {
    match source.read() {
        Ok(bytes) => {
            let (documents, problems) = split::documents(&source.name, &bytes);
            all(documents, problems, work)
        }
        Err(problem) => vec![Err(problem)],
    }
}

fn all<T: Send>(
    documents: Vec<Document<'_>>,
    problems: Vec<Problem>,
    work: &(impl Fn(&DocumentPart<'_>) -> T + Sync),
) -> Vec<Result<T, Problem>> {
    let cuts = lists::split_large_lists(documents);
    // A few documents take less time than waking the other threads.
    let mut done: Vec<Result<T, Problem>> = if cuts.len() < SHARED {
        cuts.iter().map(|cut| Ok(work(cut))).collect()
    } else {
        cuts.par_iter().map(|cut| Ok(work(cut))).collect()
    };
    done.extend(problems.into_iter().map(Err));
    done
}

/// Produces units of work.
struct Feed<'s> {
    /// The remaining inputs.
    sources: &'s [InputSource],
    /// The rest of a large file.
    blocks: Option<Blocks<'s>>,
}

impl<'s> Iterator for Feed<'s> {
    type Item = WorkUnit<'s>;

    fn next(&mut self) -> Option<WorkUnit<'s>> {
        if let Some(blocks) = &mut self.blocks {
            if let Some(part) = blocks.next() {
                return Some(part);
            }
            self.blocks = None;
        }
        let (mut files, mut bytes) = (0, 0);
        for source in self.sources.iter().take(GROUP.0) {
            let size = source.size();
            // A large file ends the group: it is read in blocks, and its results come after those of the group.
            if size > BLOCK as u64 {
                break;
            }
            (files, bytes) = (files + 1, bytes + size);
            if bytes > GROUP.1 {
                break;
            }
        }
        if let Some((group, rest)) = self
            .sources
            .split_at_checked(files)
            .filter(|(g, _)| !g.is_empty())
        {
            self.sources = rest;
            return Some(WorkUnit::Files(group));
        }
        let (large, rest) = self.sources.split_first()?;
        self.sources = rest;
        match Blocks::open(large) {
            Ok(blocks) => {
                self.blocks = Some(blocks);
                // A file that has become empty yields no block, and the next source follows.
                self.next()
            }
            Err(problem) => Some(WorkUnit::Problem(problem)),
        }
    }
}

/// A large file, split between its documents.
struct Blocks<'s> {
    file: &'s Arc<str>,
    reader: Box<dyn Read + Send + 's>,
    /// The bytes that are read but not yet passed on.
    rest: Vec<u8>,
    start: Start,
    notation: Option<Notation>,
    end: InputEnd,
}

impl<'s> Blocks<'s> {
    fn open(source: &'s InputSource) -> Result<Self, Problem> {
        Ok(Blocks {
            file: &source.name,
            reader: source.open()?,
            rest: Vec::new(),
            start: Start::default(),
            notation: None,
            end: InputEnd::Later,
        })
    }

    fn next(&mut self) -> Option<WorkUnit<'s>> {
        let mut wanted = BLOCK;
        loop {
            if let Err(e) = self.fill(wanted) {
                // The bytes before the error may end within a document, which must not be validated as if it were
                // whole.
                self.end = InputEnd::Here;
                self.rest.clear();
                return Some(WorkUnit::Problem(files::unreadable(self.file, &e)));
            }
            if self.rest.is_empty() {
                return None;
            }
            if self.notation.is_none() {
                self.notation = split::notation(&self.rest, self.end);
            }
            let (cut, ends) = match (self.end, self.notation) {
                // At the end, the rest is one block: its last document needs no separator.
                (InputEnd::Here, _) => (self.rest.len(), Vec::new()),
                (InputEnd::Later, Some(notation)) => {
                    let ends = split::whole_documents(&self.rest, notation);
                    (ends.last().copied().unwrap_or(0), ends)
                }
                (InputEnd::Later, None) => (0, Vec::new()),
            };
            if cut > 0 {
                let after = self.rest.split_off(cut);
                let bytes = std::mem::replace(&mut self.rest, after);
                let start = self.start;
                self.start = start.after(&bytes);
                return Some(WorkUnit::Block(Block {
                    file: Arc::clone(self.file),
                    bytes,
                    // Only white space leaves the notation open, and it has no documents in either.
                    notation: self.notation.unwrap_or(Notation::Yaml),
                    start,
                    ends,
                }));
            }
            // A document larger than a block.
            // Doubling keeps the total work linear in the size of the document.
            wanted = self.rest.len().saturating_mul(2);
        }
    }

    fn fill(&mut self, wanted: usize) -> std::io::Result<()> {
        let missing = wanted.saturating_sub(self.rest.len());
        if missing == 0 || self.end == InputEnd::Here {
            return Ok(());
        }
        let first = self.start == Start::default() && self.rest.is_empty();
        self.rest.reserve(missing);
        let read = (&mut self.reader)
            .take(missing as u64)
            .read_to_end(&mut self.rest)?;
        // `read_to_end` on a limited reader returns less only at the end of the file.
        if read < missing {
            self.end = InputEnd::Here;
        }
        if first && split::without_mark(&self.rest).len() < self.rest.len() {
            self.rest.drain(..3);
        }
        Ok(())
    }
}
