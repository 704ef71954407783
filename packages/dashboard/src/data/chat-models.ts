/** Deleted at logout, with everything else that the tab keeps. */
const storageKey = 'gatehouse.chat-models';
const maxKept = 200;

/** Returns the model that was chosen for a conversation in this tab; undefined for that of its agent. */
export function chosenModel(conversation: string): string | undefined {
  return read().get(conversation);
}

export function chooseModel(conversation: string, model: string | undefined): void {
  const models = read();
  models.delete(conversation);
  if (model !== undefined) models.set(conversation, model);
  sessionStorage.setItem(storageKey, JSON.stringify([...models].slice(-maxKept)));
}

function read(): Map<string, string> {
  try {
    const stored: unknown = JSON.parse(sessionStorage.getItem(storageKey) ?? '[]');
    return new Map(Array.isArray(stored) ? stored.filter(isEntry) : []);
  } catch {
    return new Map();
  }
}

function isEntry(value: unknown): value is [string, string] {
  return Array.isArray(value) && value.length === 2 && value.every((part) => typeof part === 'string');
}
