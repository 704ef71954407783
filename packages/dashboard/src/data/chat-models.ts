import type { AnswerEffort } from '@gatehouse/contract';

/** The model of the next answers of a conversation, and how long it reasons; what is absent is up to the agent. */
export interface ModelChoice {
  readonly model?: string | undefined;
  readonly effort?: AnswerEffort | undefined;
}

const efforts: readonly unknown[] = ['low', 'medium', 'high'] satisfies AnswerEffort[];
/** Deleted at logout, with everything else that the tab keeps. */
const storageKey = 'gatehouse.chat-models';
const maxKept = 200;

/** Returns what was chosen for a conversation in this tab. */
export function chosenModel(conversation: string): ModelChoice {
  return read().get(conversation) ?? {};
}

export function chooseModel(conversation: string, { model, effort }: ModelChoice): void {
  const choices = read();
  choices.delete(conversation);
  if (model !== undefined || effort !== undefined) choices.set(conversation, { model, effort });
  sessionStorage.setItem(storageKey, JSON.stringify([...choices].slice(-maxKept)));
}

function read(): Map<string, ModelChoice> {
  try {
    const stored: unknown = JSON.parse(sessionStorage.getItem(storageKey) ?? '[]');
    return new Map(Array.isArray(stored) ? stored.filter(isEntry) : []);
  } catch {
    return new Map();
  }
}

function isEntry(value: unknown): value is [string, ModelChoice] {
  if (!Array.isArray(value) || typeof value[0] !== 'string') return false;
  const choice: unknown = value[1];
  if (typeof choice !== 'object' || choice === null) return false;
  const { model, effort } = choice as Record<string, unknown>;
  return (model === undefined || typeof model === 'string') && (effort === undefined || efforts.includes(effort));
}
