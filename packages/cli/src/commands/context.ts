import type { Result } from '@gatehouse/contract';
import type { Command } from 'commander';
import { connect } from '../connection/target.ts';
import type { Io } from '../io.ts';
import { type Paint, createPaint } from '../render/paint.ts';
import { plainText, shorten } from '../render/plain.ts';
import { type CommonFlags, withConnection } from './options.ts';
import { print } from './print.ts';
import { addressOf } from './sessions.ts';

type Tree = Result<'context.tree'>;
type Node = Tree['nodes'][number];

/** Maximum characters of a summary on its line. */
const previewLength = 100;

/** `gatehouse context SESSION`: shows what the model sees of a conversation. */
export function addContextCommand(program: Command, io: Io): void {
  withConnection(program.command('context <session>'))
    .summary('show what the model sees of a conversation')
    .description(
      'Shows the summaries of a conversation as a tree, and from which message on the model sees the messages themselves. SESSION is a session key or a conversation reference (cv_…).',
    )
    .option('--agent <id>', 'agent of the session key (default: default)')
    .action(async (name: string, { agent, ...flags }: CommonFlags & { agent?: string }) => {
      const { client } = await connect(flags, io);
      // An unknown conversation has an empty tree without an error; this call reports it.
      const { session } = await client.call('session.history', { ...addressOf(name, agent), limit: 1 });
      const tree = await client.call('context.tree', { conversationRef: session.conversationRef });
      print(io, flags, tree, () => treeText(tree, session, createPaint(io)));
    });
}

function treeText(tree: Tree, session: Result<'session.history'>['session'], paint: Paint): string {
  const { nodes, messageCount, cutSeq } = tree;
  const seenAfter = Math.max(cutSeq, session.resetSeq);
  const known = new Map(nodes.map((node) => [node.summaryId, node]));
  const drawn = new Set<string>();
  const lines: string[] = [];
  function draw(siblings: readonly Node[], before: string, isRoot: boolean): void {
    for (const [at, node] of siblings.entries()) {
      if (drawn.has(node.summaryId)) continue;
      drawn.add(node.summaryId);
      const isLast = at === siblings.length - 1;
      const inView = isRoot && node.toSeq <= cutSeq;
      lines.push(`${before}${isRoot ? '' : isLast ? '└─ ' : '├─ '}${nodeText(node, inView, paint)}`);
      const children = node.childIds.flatMap((id) => known.get(id) ?? []).toSorted(bySeq);
      draw(children, isRoot ? before : `${before}${isLast ? '   ' : '│  '}`, false);
    }
  }
  draw(nodes.filter(({ parentIds }) => !parentIds.some((id) => known.has(id))).toSorted(bySeq), '', true);
  if (seenAfter < messageCount) lines.push(`${paint('cyan', '*')} messages ${seenAfter + 1}–${messageCount}, in full`);
  const reset = session.resetSeq > 0 ? `; reset after message ${session.resetSeq}` : '';
  const head = `${plainText(session.sessionKey)} of ${session.agentId}, ${messageCount} messages, ${nodes.length} summaries${reset}`;
  return [head, '', ...lines, '', `${paint('cyan', '*')} what the model sees`].join('\n');
}

function nodeText({ kind, depth, fromSeq, toSeq, tokenCount, taint, contentPreview }: Node, inView: boolean, paint: Paint): string {
  const what = kind === 'leaf' ? 'leaf' : `condensed ${depth}`;
  const facts = [`messages ${fromSeq}–${toSeq}`, what, `${tokenCount} tokens`, ...(taint === 'clean' ? [] : [taint])].join(', ');
  return `${inView ? paint('cyan', '*') : '·'} ${facts}${paint('dim', `  ${plainText(shorten(contentPreview, previewLength))}`)}`;
}

function bySeq(a: Node, b: Node): number {
  return a.fromSeq - b.fromSeq || a.toSeq - b.toSeq;
}
