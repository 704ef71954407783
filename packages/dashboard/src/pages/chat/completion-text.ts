/** What is completed before the cursor: the whole of it, and what is after the sign. */
export interface Asked {
  readonly kind: 'command' | 'name';
  readonly query: string;
  readonly start: number;
  readonly end: number;
}

/** Returns what is completed at a position: `/name` that begins the message, or `@name` after a space. */
export function asked(text: string, cursor: number): Asked | undefined {
  const before = text.slice(0, cursor);
  const command = /^\/([\p{L}\p{M}\p{N}_-]*)$/u.exec(before);
  if (command !== null) return { kind: 'command', query: command[1] ?? '', start: 0, end: cursor };
  const name = /(?:^|\s)(@([\w./-]*))$/.exec(before);
  return name === null ? undefined : { kind: 'name', query: name[2] ?? '', start: cursor - (name[1] ?? '').length, end: cursor };
}
