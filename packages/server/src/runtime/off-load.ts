import { createHash } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { newId } from '../kernel/ids.ts';
import { listInside, removeInside, writeFileInside } from '../kernel/safe-path.ts';
import type { ModelInfo } from '../llm/model.ts';
import { cutMiddle } from './bound-text.ts';
import type { TurnInput } from './turn.ts';

/** Maximum characters of one result that the model is shown. */
export const maxResultCharacters = 50_000;
/** The tool that reads an off-loaded result. */
export const fileReader = 'read';

const folder = '.gatehouse/offload';
/** Maximum characters that the model is shown of a result in a file. */
const shownCharacters = 6000;
const leastCharacters = 4000;
const maxFileCharacters = 1_000_000;
const maxFiles = 100;
const maxTotalBytes = 64 * 1024 * 1024;

/** Returns the length from which a result is worth a file: about an eighth of the smallest usable window. */
export function offLoadFrom(models: readonly Pick<ModelInfo, 'contextWindow'>[]): number {
  const window = Math.min(...models.map((model) => model.contextWindow));
  return Math.min(maxResultCharacters, Math.max(leastCharacters, Math.floor(window / 2)));
}

export interface OffLoaded {
  /** Both ends of the result. */
  readonly shown: string;
  readonly path: string;
  /** Location of the rest; placed after the fence, because it is trusted text. */
  readonly pointer: string;
}

/** Records the source of the text in a file. */
export type MarkKept = (path: string, kept: string) => Promise<void>;

/**
 * Writes a result to a file in the agent's workspace; deletes the oldest such files if needed. Text from outside is marked before it is in a file,
 * so that none is there without its mark, and none at all when the mark cannot be stored; a clean mark follows, because it is about the content.
 */
export async function offLoad(
  input: Pick<TurnInput, 'turnId' | 'workspaceDir' | 'models' | keyof ResultOwner>,
  content: string,
  { isTainted, mark }: { readonly isTainted: boolean; readonly mark: MarkKept },
): Promise<OffLoaded> {
  // Lines that the reading tool can show one by one, whatever the result looks like.
  const kept = breakLines(cutMiddle(content, maxFileCharacters));
  const name = `${markOf(input.conversationRef)}-${markOf(input.principalId)}-${newId(input.turnId)}`;
  if (isTainted) await mark(resultPath(folder, name), kept);
  const path = await keepResult(input.workspaceDir, folder, name, kept);
  if (!isTainted) await mark(path, kept);
  const lines = kept.split('\n').length;
  return {
    path,
    shown: cutMiddle(content, Math.min(shownCharacters, offLoadFrom(input.models))),
    pointer: `[${content.length} characters in all, in ${lines} lines of the file ${path}: open what you need of it with "${fileReader}", offset and limit]`,
  };
}

/** Owner of the result that is read: a conversation, and the principal of that conversation. */
type ResultOwner = Pick<TurnInput, 'conversationRef' | 'principalId'>;

const markOf = (id: string) => createHash('sha256').update(id).digest('hex').slice(0, 16);

/** True for the path of a result that a turn of this conversation, or of another one of its principal, off-loaded. */
export function isOwnResult(path: string, { conversationRef, principalId }: ResultOwner): boolean {
  const [, conversation, principal] = /^\.gatehouse\/offload\/([0-9a-f]{16})-([0-9a-f]{16})-[\w-]+\.txt$/.exec(path) ?? [];
  return conversation === markOf(conversationRef) || principal === markOf(principalId);
}

/** Returns the pointer to the rest of an off-loaded result, which outlives the result in the window. */
export const pointerOf = (content: string) => /\n(\[\d+ characters in all, in \d+ lines of the file [^\n]+\])$/.exec(content)?.[1];

const longestLine = 1000;

function breakLines(text: string): string {
  return text
    .split('\n')
    .map((line) => (line.length <= longestLine ? line : splitLine(line).join('\n')))
    .join('\n');
}

function splitLine(line: string): readonly string[] {
  const segments: string[] = [];
  for (let from = 0; from < line.length;) {
    // Never splits a character.
    const to = (line.codePointAt(from + longestLine - 1) ?? 0) > 0xffff ? from + longestLine - 1 : from + longestLine;
    segments.push(line.slice(from, to));
    from = to;
  }
  return segments;
}

const resultPath = (inFolder: string, name: string): string => `${inFolder}/${name}.txt`;

/** Writes a text to a results folder of the workspace, deletes the oldest files there if needed, and returns its path. */
export async function keepResult(workspaceDir: string, inFolder: string, name: string, text: string): Promise<string> {
  const path = resultPath(inFolder, name);
  await mkdir(workspaceDir, { recursive: true, mode: 0o700 });
  await writeFileInside(workspaceDir, path, text, { maxBytes: maxTotalBytes });
  const files = [...(await listInside(workspaceDir, inFolder))].toSorted((a, b) => b.mtimeMs - a.mtimeMs);
  let bytes = 0;
  for (const [index, file] of files.entries()) {
    bytes += file.size;
    if (index >= maxFiles || (bytes > maxTotalBytes && index > 0)) await removeInside(workspaceDir, `${inFolder}/${file.name}`);
  }
  return path;
}
