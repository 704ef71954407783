import type { Client } from '@gatehouse/client';
import type { Command } from 'commander';
import { connect } from '../connection/target.ts';
import { exitCode } from '../exit-codes.ts';
import { CliError, usageError } from '../failure.ts';
import { type Io, printLine } from '../io.ts';
import { widthOf } from '../render/notes.ts';
import { plainText } from '../render/plain.ts';
import { confirm } from './confirm.ts';
import { followGraph, readGraph } from './graph-follow.ts';
import { type GraphDefinition, looksLikeFile, namedIssues, readGraphFile } from './graph-file.ts';
import { definedText, drawDefinition, drawView, graphTable, outputsText, runsTable, savedTable, viewText, warningLines } from './graph-text.ts';
import { addGroup } from './group.ts';
import { untilInterrupted } from './interrupt.ts';
import { collect } from './job-flags.ts';
import { type CommonFlags, countOption, withConnection } from './options.ts';

type RunFlags = CommonFlags & { var: string[]; watch?: true; wait?: true; tell: string };
type PageFlags = CommonFlags & { limit: number; offset: number };

/** A graph to run: a definition, or the id of a loaded saved graph. */
type Source = { readonly definition: GraphDefinition } | { readonly graphId: string };

/** `gatehouse graph validate | run | status | outputs | cancel | answer | save | list | runs | show | delete | draw`. */
export function addGraphCommand(program: Command, io: Io, setExit: (code: number) => void): void {
  const graph = addGroup(program, 'graph')
    .summary('validate, run, watch and save graphs of agents')
    .description('Graphs of agent tasks with dependencies. FILE is YAML or JSON, SAVED the name or id (sg_…) of a saved graph, ID a run (gr_…).');

  withConnection(graph.command('list', { isDefault: true }))
    .description('Lists saved graphs by name.')
    .addOption(countOption('--limit <n>', 'how many, at most 200', 50))
    .addOption(countOption('--offset <n>', 'number of entries to skip', 0))
    .action(async ({ limit, offset, ...flags }: PageFlags) => {
      const { client } = await connect(flags, io);
      const listed = await client.call('graph.list', { limit, offset });
      printLine(io.stdout, flags.output === 'json' ? JSON.stringify(listed) : savedTable(listed));
    });

  withConnection(graph.command('validate <file>'))
    .description('Checks whether a graph can run, and shows its order and warnings; runs nothing.')
    .action(async (file: string, flags: CommonFlags) => {
      const definition = await readGraphFile(file, io);
      const { client } = await connect(flags, io);
      const defined = await named(definition, flags, () => client.call('graph.define', definition));
      printLine(io.stdout, flags.output === 'json' ? JSON.stringify(defined) : definedText(defined));
    });

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
      const started = await named('definition' in source ? source.definition : undefined, flags, () =>
        client.call('graph.execute', { ...('definition' in source ? source.definition : source), variables, ...target }),
      );
      for (const line of flags.output === 'json' ? [] : warningLines(started.warnings)) printLine(io.stderr, line);
      if (watch !== true && wait !== true)
        return printLine(io.stdout, flags.output === 'json' ? JSON.stringify(started) : `Started: ${started.graphId}`);
      if (flags.output !== 'json') printLine(watch === true ? io.stdout : io.stderr, `Started: ${started.graphId}`);
      await untilInterrupted(io, setExit, (signal) => follow(client, started.graphId, { watch: watch === true, flags, signal }));
    });

  async function follow(
    client: Client,
    graphId: string,
    { watch, flags, signal }: { readonly watch: boolean; readonly flags: CommonFlags; readonly signal: AbortSignal },
  ): Promise<void> {
    const isJson = flags.output === 'json';
    const view = await followGraph(client, graphId, isJson ? 'none' : watch ? 'lines' : io.stdout.isTTY === true ? 'counter' : 'none', io, signal);
    const { outputs } = await client.call('graph.outputs', { graphId });
    const last = Object.fromEntries(Object.entries(outputs).filter(([id]) => !view.edges.some(({ from }) => from === id)));
    if (view.status !== 'completed') setExit(exitCode.failed);
    if (isJson) return printLine(io.stdout, JSON.stringify({ ...view, outputs }));
    const reason = view.cancelReason === undefined ? '' : `, ${view.cancelReason}`;
    printLine(io.stdout, `${watch ? '\n' : ''}The graph is ${view.status}${reason}.\n\n${outputsText(last)}`);
  }

  withConnection(graph.command('watch <id>'))
    .description('Shows each change of a running graph until it ends.')
    .action(async (id: string, flags: CommonFlags) => {
      const { client } = await connect(flags, io);
      const { graphId } = await readGraph(client, id);
      await untilInterrupted(io, setExit, (signal) => follow(client, graphId, { watch: true, flags, signal }));
    });

  withConnection(graph.command('status [id]'))
    .description('Shows the state of a run, or lists recent runs.')
    .addOption(countOption('--minutes <n>', 'without ID: runs of the last minutes (default: 60)'))
    .action(async (id: string | undefined, { minutes, ...flags }: CommonFlags & { minutes?: number }) => {
      const { client } = await connect(flags, io);
      const found = await client.call('graph.status', {
        ...(id !== undefined && { graphId: id }),
        ...(minutes !== undefined && { recentMinutes: minutes }),
      });
      if (flags.output === 'json') return printLine(io.stdout, JSON.stringify(found));
      printLine(io.stdout, 'executionOrder' in found ? viewText(found, io.now(), widthOf(io)) : graphTable(found));
    });

  withConnection(graph.command('outputs <id>'))
    .description('Prints the outputs of a run, at most 12000 characters for each node; `show` prints them completely.')
    .option('--node <id>', 'only the output of this node, unformatted')
    .action(async (id: string, { node, ...flags }: CommonFlags & { node?: string }) => {
      const { client } = await connect(flags, io);
      const found = await client.call('graph.outputs', { graphId: id });
      if (node !== undefined && !(node in found.outputs)) throw new CliError(`The graph has no node ${plainText(node)}.`);
      const outputs = node === undefined ? found.outputs : { [node]: found.outputs[node] ?? null };
      printLine(io.stdout, flags.output === 'json' ? JSON.stringify({ ...found, outputs }) : outputsText(outputs));
    });

  withConnection(graph.command('cancel <id>'))
    .description('Cancels a run: no more nodes start, running nodes finish.')
    .action(async (id: string, flags: CommonFlags) => {
      const { client } = await connect(flags, io);
      const done = await client.call('graph.cancel', { graphId: id });
      printLine(io.stdout, flags.output === 'json' ? JSON.stringify(done) : `Cancelled ${done.graphId}; running nodes finish.`);
    });

  withConnection(graph.command('answer <id> <node> <text>'))
    .description('Answers an approval gate, for example yes or no; a refusal takes precedence.')
    .action(async (graphId: string, nodeId: string, answer: string, flags: CommonFlags) => {
      const { client } = await connect(flags, io);
      const done = await client.call('graph.answer', { graphId, nodeId, answer });
      printLine(io.stdout, flags.output === 'json' ? JSON.stringify(done) : `${done.nodeId} is ${done.approved ? 'approved' : 'refused'}.`);
    });

  withConnection(graph.command('save <file>'))
    .description('Saves a graph under its label or another one.')
    .option('--label <text>', 'name of the saved graph (default: `label` in the file)')
    .option('--id <id>', 'replace this saved graph (sg_…)')
    .option('--agent <id>', 'agent that owns it')
    .action(async (file: string, { label, id, agent, ...flags }: CommonFlags & { label?: string; id?: string; agent?: string }) => {
      const definition = await readGraphFile(file, io);
      const name = label ?? definition.label;
      if (name === undefined) throw usageError('The graph has no name.', 'Set one with --label, or as `label` in the file.');
      const { client } = await connect(flags, io);
      const done = await named(definition, flags, () =>
        client.call('graph.save', { ...definition, label: name, ...(id !== undefined && { id }), ...(agent !== undefined && { agentId: agent }) }),
      );
      for (const line of flags.output === 'json' ? [] : warningLines(done.warnings)) printLine(io.stderr, line);
      printLine(io.stdout, flags.output === 'json' ? JSON.stringify(done) : `Saved ${plainText(name)}: ${done.id}`);
    });

  withConnection(graph.command('runs'))
    .description('Lists runs, newest first.')
    .addOption(countOption('--limit <n>', 'how many, at most 200', 50))
    .addOption(countOption('--offset <n>', 'number of entries to skip', 0))
    .action(async ({ limit, offset, ...flags }: PageFlags) => {
      const { client } = await connect(flags, io);
      const listed = await client.call('graph.runs', { limit, offset });
      printLine(io.stdout, flags.output === 'json' ? JSON.stringify(listed) : runsTable(listed, widthOf(io)));
    });

  withConnection(graph.command('show <graph>'))
    .description('Prints a saved graph as YAML, or a run with the complete outputs of its nodes.')
    .action(async (given: string, flags: CommonFlags) => {
      const { client } = await connect(flags, io);
      if (given.startsWith('gr_')) {
        const run = await client.call('graph.runDetail', { graphId: given });
        if (flags.output === 'json') return printLine(io.stdout, JSON.stringify(run));
        const outputs = Object.fromEntries(run.nodes.map(({ nodeId, output }) => [nodeId, output]));
        return printLine(io.stdout, `${plainText(run.name)}, ${run.status}, ${run.date}\n\n${outputsText(outputs)}`);
      }
      const { label, nodes, edges, settings, ...rest } = await loadSaved(client, given);
      if (flags.output === 'json') return printLine(io.stdout, JSON.stringify({ label, nodes, edges, settings, ...rest }));
      const { stringify } = await import('./yaml.ts');
      io.stdout.write(
        printable(stringify({ label, nodes, ...(edges.length > 0 && { edges }), ...(Object.keys(settings).length > 0 && { settings }) })),
      );
    });

  withConnection(graph.command('delete <id>'))
    .description('Deletes a saved graph (SAVED) but not its runs, or a run (gr_…) with its outputs.')
    .option('-y, --yes', 'skip the confirmation')
    .action(async (given: string, { yes, ...flags }: CommonFlags & { yes?: true }) => {
      const isRun = given.startsWith('gr_');
      if (yes !== true) await confirm(`Delete ${isRun ? 'the run' : 'the saved graph'} ${plainText(given)}?`, io);
      const { client } = await connect(flags, io);
      const done = isRun
        ? await client.call('graph.deleteRun', { graphId: given })
        : await client.call('graph.delete', { id: await savedId(client, given) });
      printLine(io.stdout, flags.output === 'json' ? JSON.stringify(done) : `Deleted ${plainText(given)}.`);
    });

  withConnection(graph.command('draw <graph>'))
    .description('Draws a run with the states of its nodes, a saved graph, or a file.')
    .action(async (given: string, flags: CommonFlags) => {
      const fromFile = looksLikeFile(given) ? await readGraphFile(given, io) : undefined;
      const { client } = await connect(flags, io);
      if (given.startsWith('gr_')) {
        const view = await readGraph(client, given);
        return printLine(io.stdout, flags.output === 'json' ? JSON.stringify(view) : drawView(view));
      }
      const definition = fromFile ?? (await loadSaved(client, given));
      // Validates first: a cycle can't be drawn.
      if (fromFile !== undefined) await named(fromFile, flags, () => client.call('graph.define', fromFile));
      printLine(io.stdout, flags.output === 'json' ? JSON.stringify(definition) : drawDefinition(definition));
    });
}

/** Reports errors of a graph by node names; JSON output has the original answer. */
async function named<T>(definition: GraphDefinition | undefined, flags: CommonFlags, call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    throw definition === undefined || flags.output === 'json' ? error : namedIssues(error, definition);
  }
}

async function savedId(client: Client, given: string): Promise<string> {
  if (given.startsWith('sg_')) return given;
  for (let offset = 0; ;) {
    const page = await client.call('graph.list', { limit: 200, offset });
    const found = page.entries.filter(({ label }) => label === given);
    if (found.length > 1)
      throw usageError(`${found.length} saved graphs are named ${plainText(given)}.`, `Use an id: ${found.map(({ id }) => id).join(', ')}`);
    if (found[0] !== undefined) return found[0].id;
    if (!page.hasMore)
      throw usageError(
        `No saved graph is named ${plainText(given)}.`,
        'A file ends in .yaml, .yml or .json; `gatehouse graph list` lists saved graphs.',
      );
    offset += page.entries.length;
  }
}

async function loadSaved(client: Client, given: string) {
  return client.call('graph.load', { id: await savedId(client, given) });
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

/** Makes each line of a text safe to print. */
function printable(text: string): string {
  return text
    .split('\n')
    .map((line) => plainText(line))
    .join('\n');
}
