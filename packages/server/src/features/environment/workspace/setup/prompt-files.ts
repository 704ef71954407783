import { type TemplateName, templateNames, type TurnOrigin } from '@gatehouse/contract';
import { AppError } from '../../../../kernel/app-error.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { Log } from '../../../../kernel/log.ts';
import { openInside, statInside } from '../../../../kernel/safe-path.ts';
import type { Agent } from '../../../agents/agents/api.ts';
import type { PromptFiles, WorkspaceApi } from '../api.ts';
import { givesName, isUntouched, saysNothing, withoutMarker } from './templates.ts';

/** How long a look at the disk holds. */
const freshMs = 1000;
/** More than any template has. */
const maxTemplateBytes = 4096;

/** In the order of the prompt; `own`: for the person that the agent works for alone. */
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
  /** Of the whole file, of which `text` may be the beginning. */
  readonly untouched: boolean;
}

interface Look {
  atMs: number;
  looking: Promise<void> | undefined;
  files: ReadonlyMap<TemplateName, KnownFile>;
  built: PromptFiles | undefined;
}

export interface PromptFileReader extends WorkspaceApi {
  /** A file was changed by us: the next turn looks again. */
  changed(agent: Agent): void;
}

/** The files of workspaces that belong to prompts, kept in memory and looked at again at most once per second. */
export function createPromptFiles({
  clock,
  log,
  hideSecrets,
}: {
  readonly clock: Clock;
  readonly log: Log;
  readonly hideSecrets: (text: string) => string;
}): PromptFileReader {
  // An agent whose configuration changes is another object, and is looked at anew.
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
      log.warn({ agentId: agent.id, err: error }, 'The prompt files of a workspace could not be read');
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
        log.warn({ agentId: agent.id, err: error }, 'The checklist of a workspace could not be read');
        return undefined;
      }
    },
    changed(agent) {
      const look = looks.get(agent);
      if (look !== undefined) look.atMs = Number.NEGATIVE_INFINITY;
    },
  };
}

/** The file as it was when it did not change, as it is otherwise; undefined when there is none. */
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
  // No character takes more than three bytes of UTF-8 per UTF-16 unit; a template is known by the whole of it.
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
  const isNew = !givesName(withoutMarker(files.get('IDENTITY.md')?.text ?? ''));
  const used = sections.flatMap(({ name, title, own }) => {
    const { text, untouched } = files.get(name) ?? {};
    if (text === undefined || saysNothing(text)) return [];
    // The first conversation is the one template that does its work as it is.
    if (name === 'BOOTSTRAP.md' ? !isNew : untouched === true) return [];
    return [{ own: own === true, text: `## ${name}: ${title}\n${hideSecrets(withoutMarker(text))}` }];
  });
  if (used.length === 0) return undefined;
  const whole = (parts: typeof used) => (parts.length === 0 ? '' : ['# Files of your workspace', ...parts.map((part) => part.text)].join('\n\n'));
  return { text: whole(used.filter(({ own }) => !own)), ownText: whole(used) };
}

/** Origins at whose other end is the person that the agent works for, or a group that the owner brought it into. */
const ownOrigins: ReadonlySet<TurnOrigin> = new Set(['rpc', 'api', 'channel', 'background']);

/** What of the files belongs into the prompt of a turn of this origin. */
export function promptFilesFor(origin: TurnOrigin, files: PromptFiles | undefined): string | undefined {
  return ownOrigins.has(origin) ? files?.ownText : files?.text;
}
