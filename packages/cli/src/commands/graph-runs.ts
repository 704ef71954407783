import type { Client } from '@gatehouse/client';
import type { Command } from 'commander';
import { connect } from '../connection/target.ts';
import { exitCode, type SetExit } from '../exit-codes.ts';
import { CliError, usageError } from '../failure.ts';
import { type Io, printLine } from '../io.ts';
import { widthOf } from '../render/width.ts';
import { plainText } from '../render/plain.ts';
import { type GraphDefinition, looksLikeFile, readGraphFile } from './graph-file.ts';
import { followGraph, readGraph } from './graph-follow.ts';
import { callByNames, loadSaved, printWarnings } from './graph-source.ts';
import { graphTable, outputsText, runsTable, viewText } from './graph-text.ts';
import { untilInterrupted } from './interrupt.ts';
import { collect } from './job-flags.ts';
import { type CommonFlags, countOption, withConnection } from './options.ts';
import { print } from './print.ts';

type RunFlags = CommonFlags & { var: string[]; watch?: true; wait?: true; tell: string };
type PageFlags = CommonFlags & { limit: number; offset: number };

/** A graph to run: a definition, or the id of a loaded saved graph. */
type Source = { readonly definition: GraphDefinition } | { readonly graphId: string };

export function addRun(graph: Command, io: Io, setExit: SetExit): void {
  withConnection(graph.command('run <graph>'))
    .description('Runs a file or a saved graph in the background; with --wait or --watch, exits with 1 when it does not complete.')
    .option('--var <name=value>', 'a variable; repeatable', collect, [])
    .option('--watch', 'show each change of a node until the graph ends')
    .option('--wait', 'wait until the graph ends and print the outputs of the last nodes')
    .option('--tell <where>', 'where to announce the end and approval questions: inbox, none, or one of your conversations (cv_…)', 'inbox')
    .action(async (given: string, { var: assigned, watch, wait, tell: destination, ...flags }: RunFlags) => {
      const variables = readVariables(assigned);
      if (destination !== 'inbox' && destination !== 'none' && !destination.startsWith('cv_'))
        throw usageError('--tell: expected inbox, none, or the reference of a conversation (cv_…).');
      const fromFile = looksLikeFile(given) ? await readGraphFile(given, io) : undefined;
      const { client } = await connect(flags, io);
      const source: Source = fromFile === undefined ? { graphId: (await loadSaved(client, given)).graphId } : { definition: fromFile };
      const target = destination === 'none' ? {} : { announceChannelType: 'gateway', announceChannelId: destination };
      const started = await callByNames('definition' in source ? source.definition : undefined, flags, () =>
        client.call('graph.execute', { ...('definition' in source ? source.definition : source), variables, ...target }),
      );
      printWarnings(started.warnings, flags, io);
      if (watch !== true && wait !== true) return print(io, flags, started, () => `Started: ${started.graphId}`);
      if (flags.output !== 'json') printLine(watch === true ? io.stdout : io.stderr, `Started: ${started.graphId}`);
      await untilInterrupted(io, setExit, (signal) => follow(client, started.graphId, { watch: watch === true, flags, signal, io, setExit }));
    });
}

export function addWatch(graph: Command, io: Io, setExit: SetExit): void {
  withConnection(graph.command('watch <id>'))
    .description('Shows each change of a running graph until it ends.')
    .action(async (id: string, flags: CommonFlags) => {
      const { client } = await connect(flags, io);
      const { graphId } = await readGraph(client, id);
      await untilInterrupted(io, setExit, (signal) => follow(client, graphId, { watch: true, flags, signal, io, setExit }));
    });
}

interface Following {
  /** Prints each change instead of a counter. */
  readonly watch: boolean;
  readonly flags: CommonFlags;
  readonly signal: AbortSignal;
  readonly io: Io;
  readonly setExit: SetExit;
}

/** Follows a run until it ends, prints the outputs of its last nodes, and sets the exit code unless it completed. */
async function follow(client: Client, graphId: string, { watch, flags, signal, io, setExit }: Following): Promise<void> {
  const progress = flags.output === 'json' ? 'none' : watch ? 'lines' : io.stdout.isTTY === true ? 'counter' : 'none';
  const view = await followGraph(client, graphId, progress, io, signal);
  const { outputs } = await client.call('graph.outputs', { graphId });
  const last = Object.fromEntries(Object.entries(outputs).filter(([id]) => !view.edges.some(({ from }) => from === id)));
  if (view.status !== 'completed') setExit(exitCode.failed);
  const reason = view.cancelReason === undefined ? '' : `, ${view.cancelReason}`;
  print(io, flags, { ...view, outputs }, () => `${watch ? '\n' : ''}The graph is ${view.status}${reason}.\n\n${outputsText(last)}`);
}

export function addStatus(graph: Command, io: Io): void {
  withConnection(graph.command('status [id]'))
    .description('Shows the state of a run, or lists recent runs.')
    .addOption(countOption('--minutes <n>', 'without ID: runs of the last minutes (default: 60)'))
    .action(async (id: string | undefined, { minutes, ...flags }: CommonFlags & { minutes?: number }) => {
      const { client } = await connect(flags, io);
      const found = await client.call('graph.status', {
        graphId: id,
        recentMinutes: minutes,
      });
      print(io, flags, found, () => ('executionOrder' in found ? viewText(found, io.now(), widthOf(io)) : graphTable(found)));
    });
}

export function addOutputs(graph: Command, io: Io): void {
  withConnection(graph.command('outputs <id>'))
    .description('Prints the outputs of a run, at most 12000 characters for each node; `show` prints them completely.')
    .option('--node <id>', 'only the output of this node, unformatted')
    .action(async (id: string, { node, ...flags }: CommonFlags & { node?: string }) => {
      const { client } = await connect(flags, io);
      const found = await client.call('graph.outputs', { graphId: id });
      if (node !== undefined && !(node in found.outputs)) throw new CliError(`The graph has no node ${plainText(node)}.`);
      const outputs = node === undefined ? found.outputs : { [node]: found.outputs[node] ?? null };
      print(io, flags, { ...found, outputs }, () => outputsText(outputs));
    });
}

export function addCancel(graph: Command, io: Io): void {
  withConnection(graph.command('cancel <id>'))
    .description('Cancels a run: no more nodes start, running nodes finish.')
    .action(async (id: string, flags: CommonFlags) => {
      const { client } = await connect(flags, io);
      const done = await client.call('graph.cancel', { graphId: id });
      print(io, flags, done, () => `Cancelled ${done.graphId}; running nodes finish.`);
    });
}

export function addAnswer(graph: Command, io: Io): void {
  withConnection(graph.command('answer <id> <node> <text>'))
    .description('Answers an approval gate, for example yes or no; a refusal takes precedence.')
    .action(async (graphId: string, nodeId: string, answer: string, flags: CommonFlags) => {
      const { client } = await connect(flags, io);
      const done = await client.call('graph.answer', { graphId, nodeId, answer });
      print(io, flags, done, () => `${done.nodeId} is ${done.approved ? 'approved' : 'refused'}.`);
    });
}

export function addRuns(graph: Command, io: Io): void {
  withConnection(graph.command('runs'))
    .description('Lists runs, newest first.')
    .addOption(countOption('--limit <n>', 'how many, at most 200', 50))
    .addOption(countOption('--offset <n>', 'number of entries to skip', 0))
    .action(async ({ limit, offset, ...flags }: PageFlags) => {
      const { client } = await connect(flags, io);
      const listed = await client.call('graph.runs', { limit, offset });
      print(io, flags, listed, () => runsTable(listed, widthOf(io)));
    });
}

function readVariables(given: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    given.map((text) => {
      const at = text.indexOf('=');
      if (at < 1) throw usageError(`--var ${plainText(text)}: expected NAME=VALUE.`, 'Such as --var TOPIC=tides.');
      return [text.slice(0, at), text.slice(at + 1)];
    }),
  );
}
