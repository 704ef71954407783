import { type TemplateName, templateNames, type TurnOrigin } from '@gatehouse/contract';
import { AppError } from '../../../../kernel/app-error.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { Log } from '../../../../kernel/log.ts';
import { openInside, statInside } from '../../../../kernel/safe-path.ts';
import type { Agent } from '../../../agents/agents/api.ts';
import type { PromptFiles, WorkspaceApi } from '../api.ts';
import { hasName, isUntouched, saysNothing, withoutMarker } from './templates.ts';

/** How long files read from disk stay valid. */
const freshMs = 1000;
/** More than any template has. */
const maxTemplateBytes = 4096;

/** Ordered as in the prompt; `own`: only for the agent's owner. */
const sections: readonly { readonly name: TemplateName; readonly title: string; readonly own?: true }[] = [
  { name: 'SOUL.md', title: 'who you are' },
  { name: 'IDENTITY.md', title: 'your name and manner' },
  { name: 'USER.md', title: 'the person you work for', own: true },
  { name: 'AGENTS.md', title: 'rules of work' },
  { name: 'ROLE.md', title: 'your task' },
  { name: 'TOOLS.md', title: 'notes on the environment' },
  { name: 'HEARTBEAT.md', title: 'checklist' },
  { name: 'BOOT.md', title: 'what to do first in a new conversation' },
  { name: 'BOOTSTRAP.md', title: 'the workspace is new: do this first', own: true },
];

interface KnownFile {
  readonly stamp: string;
  readonly text: string;
  /** Size of the whole file, of which `text` may be the beginning. */
  readonly untouched: boolean;
}

interface Look {
  atMs: number;
  looking: Promise<void> | undefined;
  files: ReadonlyMap<TemplateName, KnownFile>;
  built: PromptFiles | undefined;
}

export interface PromptFileReader extends WorkspaceApi {
  /** Called after the daemon changed a file: the next turn reads it again. */
  changed(agent: Agent): void;
}

/** Caches the prompt files of workspaces and reads them at most once per second. */
export function createPromptFiles({
  clock,
  log,
  hideSecrets,
}: {
  readonly clock: Clock;
  readonly log: Log;
  readonly hideSecrets: (text: string) => string;
}): PromptFileReader {
  // A changed agent configuration is a new object, so its files are read again.
  const looks = new WeakMap<Agent, Look>();

  function lookOf(agent: Agent): Look {
    let look = looks.get(agent);
    if (look === undefined) {
      look = { atMs: Number.NEGATIVE_INFINITY, looking: undefined, files: new Map(), built: undefined };
      looks.set(agent, look);
    }
    return look;
  }

  async function readAgain(agent: Agent, look: Look): Promise<void> {
    const { maxFileChars } = agent.config.workspace;
    try {
      const found = await Promise.all(templateNames.map((name) => known(agent.workspaceDir, name, maxFileChars, look.files.get(name))));
      const files = new Map(found.flatMap((file, index) => (file === undefined ? [] : [[templateNames[index] ?? 'SOUL.md', file] as const])));
      const same = files.size === look.files.size && [...files].every(([name, file]) => look.files.get(name) === file);
      look.files = files;
      if (!same) look.built = build(files, hideSecrets);
    } catch (error) {
      log.warn({ agentId: agent.id, err: error }, 'Failed to read the prompt files of a workspace');
    }
  }

  return {
    promptFiles: (agent) => (agent.config.workspace.promptFiles ? looks.get(agent)?.built : undefined),
    refresh(agent) {
      if (!agent.config.workspace.promptFiles) return undefined;
      const look = lookOf(agent);
      if (look.looking !== undefined) return look.looking;
      const now = clock.monotonic();
      if (now - look.atMs < freshMs) return undefined;
      look.atMs = now;
      look.looking = readAgain(agent, look).finally(() => {
        look.looking = undefined;
      });
      return look.looking;
    },
    async checklist(agent) {
      try {
        const file = await known(agent.workspaceDir, 'HEARTBEAT.md', agent.config.workspace.maxFileChars, undefined);
        return file === undefined || saysNothing(file.text) || isUntouched(file.text) ? undefined : hideSecrets(withoutMarker(file.text));
      } catch (error) {
        log.warn({ agentId: agent.id, err: error }, 'Failed to read the checklist of a workspace');
        return undefined;
      }
    },
    changed(agent) {
      const look = looks.get(agent);
      if (look !== undefined) look.atMs = Number.NEGATIVE_INFINITY;
    },
  };
}

/** Returns the cached file if it did not change, otherwise reads it; undefined when there is none. */
async function known(root: string, name: TemplateName, maxCharacters: number, last: KnownFile | undefined): Promise<KnownFile | undefined> {
  const stat = await statInside(root, name);
  if (stat === undefined) return undefined;
  const stamp = `${stat.mtimeMs} ${stat.size}`;
  if (last?.stamp === stamp) return last;
  try {
    return { stamp, ...(await readStart(root, name, maxCharacters)) };
  } catch (error) {
    if (error instanceof AppError && error.code === 'not_found') return undefined;
    throw error;
  }
}

async function readStart(root: string, name: TemplateName, maxCharacters: number): Promise<Omit<KnownFile, 'stamp'>> {
  await using handle = await openInside(root, name);
  // No character takes more than three bytes of UTF-8 per UTF-16 unit; recognizing a template needs all of it.
  const buffer = Buffer.allocUnsafe(maxCharacters * 3 + maxTemplateBytes);
  let length = 0;
  for (;;) {
    const { bytesRead } = await handle.read(buffer, length, buffer.length - length, null);
    length += bytesRead;
    if (bytesRead === 0 || length === buffer.length) break;
  }
  const text = buffer.subarray(0, length).toString();
  const untouched = isUntouched(text);
  if (text.length <= maxCharacters) return { text, untouched };
  return {
    text: `${text.slice(0, maxCharacters).toWellFormed()}\n[${name} is longer; only its first ${maxCharacters} characters are shown here]`,
    untouched,
  };
}

function build(files: ReadonlyMap<TemplateName, KnownFile>, hideSecrets: (text: string) => string): PromptFiles | undefined {
  const isNew = !hasName(withoutMarker(files.get('IDENTITY.md')?.text ?? ''));
  const used = sections.flatMap(({ name, title, own }) => {
    const { text, untouched } = files.get(name) ?? {};
    if (text === undefined || saysNothing(text)) return [];
    // The first conversation is the only template that is used unchanged.
    if (name === 'BOOTSTRAP.md' ? !isNew : untouched === true) return [];
    return [{ own: own === true, text: `## ${name}: ${title}\n${hideSecrets(withoutMarker(text))}` }];
  });
  if (used.length === 0) return undefined;
  const whole = (parts: typeof used) => (parts.length === 0 ? '' : ['# Files of your workspace', ...parts.map((part) => part.text)].join('\n\n'));
  return { text: whole(used.filter(({ own }) => !own)), ownText: whole(used) };
}

/** Origins with the agent's owner at the other end, or a group that the owner added the agent to. */
const ownOrigins: ReadonlySet<TurnOrigin> = new Set(['rpc', 'api', 'channel', 'background']);

/** Returns the text of the files for a turn of this origin. */
export function promptFilesFor(origin: TurnOrigin, files: PromptFiles | undefined): string | undefined {
  return ownOrigins.has(origin) ? files?.ownText : files?.text;
}
