/** Names that the text of a message refers to by id. */
export interface Names {
  /** Name of a person; undefined when it is not known. */
  userName(id: string): string | undefined;
}

const control = /<([^<>]*)>/g;

/** Turns the text of a message into plain text: Slack marks people, channels and links with `<…>` and escapes `&`, `<` and `>`. */
export function toPlainText(text: string, names: Names): string {
  return unescape(text.replace(control, (_all, inner: string) => plainOf(inner, names)));
}

/** Returns the ids of the people that a text mentions. */
export function mentionsOf(text: string): string[] {
  return [...text.matchAll(/<@([A-Z0-9]{1,32})(?:\|[^<>]*)?>/g)].flatMap(([, id]) => (id === undefined ? [] : [id]));
}

/** Removes the mention of `id` at the beginning of a text, with what separates it from the rest. */
export function withoutLeadingMention(text: string, id: string): string {
  return text.replace(new RegExp(`^\\s*<@${id}(?:\\|[^<>]*)?>[\\s:,]*`), '');
}

/** Escapes plain text, so that nothing of it is a mention, a link or a command of Slack. */
export function escapeText(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

/** Keeps the links of a text in mrkdwn, but notifies nobody: no mention of a person, a channel or everybody. */
export function withoutMentions(markup: string): string {
  return markup.replace(/<(?=[!@#])/g, '&lt;');
}

function plainOf(inner: string, names: Names): string {
  const bar = inner.indexOf('|');
  const target = bar === -1 ? inner : inner.slice(0, bar);
  const label = bar === -1 ? '' : inner.slice(bar + 1);
  switch (target[0]) {
    case '@': {
      const id = target.slice(1);
      return `@${label || (names.userName(id) ?? id)}`;
    }
    case '#':
      return `#${label || target.slice(1)}`;
    case '!':
      return plainOfCommand(target.slice(1), label);
    default:
      return plainOfLink(target, label);
  }
}

function plainOfCommand(command: string, label: string): string {
  if (command.startsWith('subteam^')) return label || '@group';
  if (command.startsWith('date^')) return label;
  return label.startsWith('@') ? label : `@${label || command}`;
}

function plainOfLink(url: string, label: string): string {
  const shown = url.replace(/^mailto:/, '');
  return label === '' || shown === label || shown.replace(/^https?:\/\//, '') === label ? shown : `${label} (${shown})`;
}

function unescape(text: string): string {
  return text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&');
}
