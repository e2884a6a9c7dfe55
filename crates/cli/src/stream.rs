//! Work on every document of some files: on all cores, with a bounded part of them in memory, in their order.

use crate::files::{self, Source};
use crate::input::{Document, Notation, Start};
use crate::lists::{self, Cut};
use crate::problem::Problem;
use crate::progress::Progress;
use crate::split::{self, End};
use rayon::prelude::*;
use std::io::Read;
use std::sync::Arc;

/// So much of a large file is worked on at once.
const BLOCK: usize = 4 << 20;
/// So many small files are worked on at once, and so many bytes of them.
const GROUP: (usize, u64) = (1024, 16 << 20);
/// From so many documents on, those of one file are shared out among the cores.
const SHARED: usize = 8;

/// Does work for every document, and hands on what comes of it in the order of the documents. While one part of the
/// documents is worked on, the results of the part before it are handed on and the part after it is read.
pub(crate) fn each_document<T: Send>(
    sources: &[Source],
    work: impl Fn(&Document<'_>) -> T + Sync,
    mut hand_on: impl FnMut(T) + Send,
) -> Vec<Problem> {
    let mut problems = Vec::new();
    let progress = Progress::of(sources);
    let work = |cut: &Cut<'_>| {
        let result = cut.with(&work);
        progress.advance(cut.len());
        result
    };
    let mut feed = Feed {
        sources,
        blocks: None,
    };
    let mut current = feed.next();
    let mut done = Vec::new();
    while let Some(part) = current {
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

/// What is worked on at once.
enum Part<'s> {
    /// Small files, which whoever works on them reads.
    Files(&'s [Source]),
    /// Whole documents of a large one.
    Block(Block),
    /// What cannot be read.
    Problem(Problem),
}

struct Block {
    file: Arc<str>,
    bytes: Vec<u8>,
    notation: Notation,
    start: Start,
    /// Where its documents end, as far as that is known.
    ends: Vec<usize>,
}

impl Part<'_> {
    fn run<T: Send>(self, work: &(impl Fn(&Cut<'_>) -> T + Sync)) -> Vec<Result<T, Problem>> {
        match self {
            Part::Files([source]) => file(source, work),
            Part::Files(sources) => {
                let done: Vec<_> = sources.par_iter().map(|source| file(source, work)).collect();
                done.into_iter().flatten().collect()
            }
            Part::Block(block) => {
                let (documents, problems) = split::split_at(
                    &block.file,
                    &block.bytes,
                    block.notation,
                    block.start,
                    &block.ends,
                );
                all(documents, problems, work)
            }
            Part::Problem(problem) => vec![Err(problem)],
        }
    }
}

fn file<T: Send>(source: &Source, work: &(impl Fn(&Cut<'_>) -> T + Sync)) -> Vec<Result<T, Problem>> {
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
    work: &(impl Fn(&Cut<'_>) -> T + Sync),
) -> Vec<Result<T, Problem>> {
    let cuts = lists::cut(documents);
    let mut done: Vec<Result<T, Problem>> = if cuts.len() < SHARED {
        cuts.iter().map(|cut| Ok(work(cut))).collect()
    } else {
        cuts.par_iter().map(|cut| Ok(work(cut))).collect()
    };
    done.extend(problems.into_iter().map(Err));
    done
}

/// The parts, one after the other.
struct Feed<'s> {
    /// Those that are not begun.
    sources: &'s [Source],
    /// What is left of a large file.
    blocks: Option<Blocks<'s>>,
}

impl<'s> Iterator for Feed<'s> {
    type Item = Part<'s>;

    fn next(&mut self) -> Option<Part<'s>> {
        if let Some(blocks) = &mut self.blocks {
            if let Some(part) = blocks.next() {
                return Some(part);
            }
            self.blocks = None;
        }
        let (mut files, mut bytes) = (0, 0);
        for source in self.sources.iter().take(GROUP.0) {
            let size = source.size();
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
            return Some(Part::Files(group));
        }
        let (large, rest) = self.sources.split_first()?;
        self.sources = rest;
        match Blocks::open(large) {
            Ok(blocks) => {
                self.blocks = Some(blocks);
                self.next()
            }
            Err(problem) => Some(Part::Problem(problem)),
        }
    }
}

/// A large file, cut between its documents.
struct Blocks<'s> {
    file: &'s Arc<str>,
    reader: Box<dyn Read + Send + 's>,
    /// What is read, and not handed out.
    rest: Vec<u8>,
    start: Start,
    notation: Option<Notation>,
    end: End,
}

impl<'s> Blocks<'s> {
    fn open(source: &'s Source) -> Result<Self, Problem> {
        Ok(Blocks {
            file: &source.name,
            reader: source.open()?,
            rest: Vec::new(),
            start: Start::default(),
            notation: None,
            end: End::Later,
        })
    }

    fn next(&mut self) -> Option<Part<'s>> {
        let mut wanted = BLOCK;
        loop {
            if let Err(e) = self.fill(wanted) {
                self.end = End::Here;
                self.rest.clear();
                return Some(Part::Problem(files::unreadable(self.file, &e)));
            }
            if self.rest.is_empty() {
                return None;
            }
            if self.notation.is_none() {
                self.notation = split::notation(&self.rest, self.end);
            }
            let (cut, ends) = match (self.end, self.notation) {
                (End::Here, _) => (self.rest.len(), Vec::new()),
                (End::Later, Some(notation)) => {
                    let ends = split::whole_documents(&self.rest, notation);
                    (ends.last().copied().unwrap_or(0), ends)
                }
                (End::Later, None) => (0, Vec::new()),
            };
            if cut > 0 {
                let after = self.rest.split_off(cut);
                let bytes = std::mem::replace(&mut self.rest, after);
                let start = self.start;
                self.start = start.after(&bytes);
                return Some(Part::Block(Block {
                    file: Arc::clone(self.file),
                    bytes,
                    notation: self.notation.unwrap_or(Notation::Yaml),
                    start,
                    ends,
                }));
            }
            // A document of this size needs more.
            wanted = self.rest.len().saturating_mul(2);
        }
    }

    fn fill(&mut self, wanted: usize) -> std::io::Result<()> {
        let missing = wanted.saturating_sub(self.rest.len());
        if missing == 0 || self.end == End::Here {
            return Ok(());
        }
        let first = self.start == Start::default() && self.rest.is_empty();
        self.rest.reserve(missing);
        let read = (&mut self.reader)
            .take(missing as u64)
            .read_to_end(&mut self.rest)?;
        if read < missing {
            self.end = End::Here;
        }
        if first && split::without_mark(&self.rest).len() < self.rest.len() {
            self.rest.drain(..3);
        }
        Ok(())
    }
}
