import { cutMiddle } from '../../../../runtime/bound-text.ts';
import { parseJson } from '../../../../kernel/json.ts';
import { keepResult } from '../../../../runtime/off-load.ts';

/** Workspace folder, visible to scripts, for results that are too long for a line. */
const folder = 'output/scripts';
const maxFileCharacters = 8 * 1024 * 1024;
/** Maximum characters of a result that a script receives without a file. */
const inlineCharacters = 32_768;
const shownCharacters = 2000;

/** The result of a call as a script receives it; `ref.path` is the path in the jail. */
export interface ScriptResult {
  readonly text: string;
  readonly ref?: { readonly path: string; readonly bytes: number; readonly kind: 'json' | 'text' };
}

/** Stores a long result in a file of the workspace; the oldest such files are deleted for new ones. */
export async function toScriptResult(content: string, about: { readonly workspaceDir: string; readonly inside: string; readonly name: string }) {
  if (content.length <= inlineCharacters) return { text: content } satisfies ScriptResult;
  const kept = cutMiddle(content, maxFileCharacters);
  const path = await keepResult(about.workspaceDir, folder, about.name, kept);
  const kind = /^\s*[[{]/.test(kept) && isJson(kept) ? ('json' as const) : ('text' as const);
  const result: ScriptResult = {
    text: content.slice(0, shownCharacters).toWellFormed(),
    ref: { path: `${about.inside}/${path}`, bytes: Buffer.byteLength(kept), kind },
  };
  return result;
}

function isJson(text: string): boolean {
  try {
    parseJson(text);
    return true;
  } catch {
    return false;
  }
}
