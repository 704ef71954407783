import { text } from 'node:stream/consumers';
import type { ParamsInput, Result } from '@gatehouse/contract';
import type { Command } from 'commander';
import { connect } from '../connection/target.ts';
import { usageError } from '../failure.ts';
import { type Io, printLine } from '../io.ts';
import { confirm } from './confirm.ts';
import { addGroup } from './group.ts';
import { browsed, entryText, foundMemories, lifecycleText, reviewText, statsText } from './memory-text.ts';
import { writeNewFile } from './new-file.ts';
import { type CommonFlags, countOption, withConnection } from './options.ts';
import { print } from './print.ts';

type AgentFlags = CommonFlags & { agent?: string };
type FilterFlags = AgentFlags & { type?: MemoryType; trust?: TrustLevel; tag: string[]; limit: number };
type StoreFlags = AgentFlags & { type?: MemoryType; tag: string[]; external?: true; pin?: true };
type MemoryType = NonNullable<ParamsInput<'memory.browse'>['memoryType']>;
type TrustLevel = NonNullable<ParamsInput<'memory.browse'>['trustLevel']>;

/** Timeout for a review, which calls a model once per conversation. */
const patienceMs = 600_000;
const exportPage = 1000;

/** `gatehouse memory search | browse | show | store | delete | export | stats | flush | review | lifecycle`. */
export function addMemoryCommand(program: Command, io: Io): void {
  const memory = addGroup(program, 'memory')
    .summary('search, browse, store, delete and export what agents remember')
    .description('What agents remember across conversations; storing, deleting, exporting and maintenance need scope admin.');

  addBrowse(memory, io);
  addSearch(memory, io);
  addShow(memory, io);
  addStore(memory, io);
  addDelete(memory, io);
  addExport(memory, io);
  addStats(memory, io);
  addFlush(memory, io);
  addReview(memory, io);
  addLifecycle(memory, io);
}

function addBrowse(memory: Command, io: Io): void {
  withFilters(memory.command('browse', { isDefault: true }), 20, 'only those of this agent')
    .description('Lists memories, newest first.')
    .addOption(countOption('--offset <n>', 'number of entries to skip', 0))
    .option('--oldest', 'oldest first')
    .action(async ({ agent, type, trust, tag, limit, offset, oldest, ...flags }: FilterFlags & { offset: number; oldest?: true }) => {
      const { client } = await connect(flags, io);
      const page = await client.call('memory.browse', {
        limit,
        offset,
        agentId: agent,
        ...(oldest === true ? { sort: 'oldest' } : {}),
        memoryType: type,
        trustLevel: trust,
        ...(tag.length === 0 ? {} : { tags: tag }),
      });
      print(io, flags, page, browsed);
    });
}

function addSearch(memory: Command, io: Io): void {
  withFilters(memory.command('search <words...>'), 10, 'agent (default: the default one)')
    .description('Finds memories by terms and by meaning, best first, and explains each match.')
    .action(async (words: string[], { agent, type, trust, tag, limit, ...flags }: FilterFlags) => {
      const query = words.join(' ').trim();
      if (query === '') throw usageError('The query is empty.');
      const { client } = await connect(flags, io);
      const found = await client.call('memory.search', {
        query,
        limit,
        agentId: agent,
        ...(type === undefined ? {} : { types: [type] }),
        ...(trust === undefined ? {} : { trust: [trust] }),
        ...(tag.length === 0 ? {} : { tags: tag }),
      });
      print(io, flags, found, foundMemories);
    });
}

function addShow(memory: Command, io: Io): void {
  withConnection(memory.command('show <id>'))
    .description('Shows a memory with all its details.')
    .action(async (id: string, flags: CommonFlags) => {
      const { client } = await connect(flags, io);
      const { entry } = await client.call('memory.inspect', { id });
      if (entry === undefined) throw usageError(`No memory ${id}.`, 'Pass the full id, as `memory browse --json` prints it.');
      print(io, flags, entry, entryText);
    });
}

function addStore(memory: Command, io: Io): void {
  withConnection(memory.command('store [text]'))
    .description('Stores a memory for everyone who uses the agent; reads standard input without TEXT.')
    .option('--agent <id>', 'agent (default: the default one)')
    .option('--type <type>', 'working, episodic, semantic or procedural (default: semantic)')
    .option('--tag <tag>', 'a tag; repeatable', collect, [])
    .option('--external', 'from an external source, not trusted')
    .option('--pin', 'keep it even if it is not used')
    .action(async (given: string | undefined, { agent, type, tag, external, pin, ...flags }: StoreFlags) => {
      const content = (given ?? (await text(io.stdin))).trim();
      if (content === '') throw usageError('Nothing to store.', 'Pass the text, or pipe it in.');
      const { client } = await connect(flags, io);
      const stored = await client.call('memory.store', {
        content,
        agentId: agent,
        memoryType: type,
        ...(tag.length === 0 ? {} : { tags: tag }),
        ...(external === true ? { trustLevel: 'external' } : {}),
        ...(pin === true ? { pinned: pin } : {}),
      });
      if (stored.tainted && flags.output !== 'json') printLine(io.stderr, 'Stored as external: the content looks like a prompt injection.');
      print(io, flags, stored, ({ id }) => id);
    });
}

function addDelete(memory: Command, io: Io): void {
  withConnection(memory.command('delete <id...>'))
    .description('Deletes memories.')
    .option('-y, --yes', 'skip the confirmation')
    .action(async (ids: string[], { yes, ...flags }: CommonFlags & { yes?: true }) => {
      if (yes !== true) await confirm(`Delete ${ids.length === 1 ? `the memory ${ids[0] ?? ''}` : `${ids.length} memories`}?`, io);
      const { client } = await connect(flags, io);
      const done = await client.call('memory.delete', { ids });
      const missed = done.failed === 0 ? '' : `; ${done.failed} not found`;
      print(io, flags, done, () => `Deleted ${done.deleted} memories${missed}.`);
    });
}

function addExport(memory: Command, io: Io): void {
  withConnection(memory.command('export'))
    .description('Writes all memories as one JSON object.')
    .option('--agent <id>', 'only those of this agent')
    .option('--file <file>', 'write to this new file instead of standard output')
    .action(async ({ agent, file, ...flags }: AgentFlags & { file?: string }) => {
      const { client } = await connect(flags, io);
      const entries: Result<'memory.export'>['entries'] = [];
      let page = await client.call('memory.export', { agentId: agent, limit: exportPage });
      for (;;) {
        entries.push(...page.entries);
        if (!page.hasMore) break;
        page = await client.call('memory.export', { agentId: agent, limit: exportPage, offset: entries.length });
      }
      const whole = { exportedAt: page.exportedAt, totalEntries: page.totalEntries, entries };
      if (file === undefined) return print(io, flags, whole, () => JSON.stringify(whole, null, 2));
      const written = await writeNewFile(file, new Blob([`${JSON.stringify(whole, null, 2)}\n`]).stream(), io);
      print(io, flags, written, () => `Wrote ${entries.length} memories to ${written.file}.`);
    });
}

function addStats(memory: Command, io: Io): void {
  withConnection(memory.command('stats'))
    .description('Counts memories by type and trust.')
    .option('--agent <id>', 'only those of this agent')
    .action(async ({ agent, ...flags }: AgentFlags) => {
      const { client } = await connect(flags, io);
      const stats = await client.call('memory.stats', { agentId: agent });
      print(io, flags, stats, statsText);
    });
}

function addFlush(memory: Command, io: Io): void {
  withConnection(memory.command('flush'))
    .description('Permanently deletes all memories of an agent.')
    .requiredOption('--agent <id>', 'agent; required, so that none is flushed by mistake')
    .option('-y, --yes', 'skip the confirmation')
    .action(async ({ agent, yes, ...flags }: CommonFlags & { agent: string; yes?: true }) => {
      if (yes !== true) await confirm(`Permanently delete all memories of ${agent}?`, io);
      const { client } = await connect(flags, io);
      const done = await client.call('memory.flush', { agentId: agent });
      print(io, flags, done, () => `Flushed ${done.entriesRemoved} memories of ${agent}.`);
    });
}

function addReview(memory: Command, io: Io): void {
  withConnection(memory.command('review'))
    .description('Reviews changed conversations and stores what is worth remembering; uses a model, which costs tokens.')
    .option('--agent <id>', 'agent (default: the default one)')
    .action(async ({ agent, ...flags }: AgentFlags) => {
      const { client } = await connect(flags, io);
      const done = await client.call('memory.review', { agentId: agent }, { timeoutMs: patienceMs });
      print(io, flags, done, reviewText);
    });
}

function addLifecycle(memory: Command, io: Io): void {
  withConnection(memory.command('lifecycle'))
    .description('Promotes memories that are used, demotes fading ones, and evicts expired ones and those over the limits.')
    .option('--agent <id>', 'agent (default: the default one)')
    .option('--dry-run', 'only show the plan')
    .option('-y, --yes', 'skip the confirmation')
    .action(async ({ agent, dryRun = false, yes, ...flags }: AgentFlags & { dryRun?: boolean; yes?: true }) => {
      if (!dryRun && yes !== true) await confirm('Sweep the memories? `--dry-run` shows the plan.', io);
      const { client } = await connect(flags, io);
      const done = await client.call('memory.lifecycle', { agentId: agent, dryRun }, { timeoutMs: patienceMs });
      print(io, flags, done, lifecycleText);
    });
}

function withFilters(command: Command, limit: number, agentText: string): Command {
  return withConnection(command)
    .option('--agent <id>', agentText)
    .option('--type <type>', 'working, episodic, semantic or procedural')
    .option('--trust <level>', 'system, learned or external')
    .option('--tag <tag>', 'required tag; repeatable', collect, [])
    .addOption(countOption('--limit <n>', 'number of memories', limit));
}

function collect(value: string, before: readonly string[]): string[] {
  return [...before, value];
}
