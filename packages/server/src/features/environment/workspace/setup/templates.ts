import { createHash } from 'node:crypto';
import { type TemplateName, templateNames } from '@gatehouse/contract';

const bodies: Readonly<Record<TemplateName, string>> = {
  'SOUL.md': `# Soul

Who the agent is: how it speaks, what it cares about, what it never does.

- Speak plainly and briefly. Say what you think, and what you do not know.
- Help first, talk about helping later.
- What belongs to others stays with you: do not pass on what was said in confidence.
`,
  'IDENTITY.md': `# Identity

- Name:
- What you are:
- Manner:
`,
  'USER.md': `# The person you work for

- Name:
- How to address them:
- Time zone:
- What matters to them:
`,
  'AGENTS.md': `# Rules of work

- Look before you change something: read a file before you write it.
- Put what you make into the standard folders: projects, scripts, documents, media, data, output.
- Do not delete what you did not make without being asked to.
- When a task is done, say in one or two sentences what was done and what was not.
`,
  'ROLE.md': `# Role

What this agent is for, and what it leaves to others.
`,
  'TOOLS.md': `# Notes on the environment

Hosts, accounts, folders and habits that are worth knowing when tools are used here. No secrets.
`,
  'HEARTBEAT.md': `# Checklist

`,
  'BOOTSTRAP.md': `# First conversation

This workspace is new. Before other work, get to know the person who writes, in a short and friendly conversation:

1. Ask what they want to call you, and what you are to be for them.
2. Ask how to address them, and what you should know about them.
3. Write the answers into IDENTITY.md and USER.md, and into SOUL.md what they wish of your manner.
4. Then delete this file (apply_patch with "*** Delete File: BOOTSTRAP.md"). If a tool for one of these steps is missing, explain what to write into which file.

If they want something else first, do that, and come back to this later.
`,
  'BOOT.md': `# At the beginning of a conversation

`,
};

const markerLine = /^<!-- gatehouse-template ([0-9a-f]{16}) [^\n]*-->\r?\n/;

function digestOf(body: string): string {
  return createHash('sha256').update(body).digest('hex').slice(0, 16);
}

/** Returns a template: its first line carries the digest of the rest, so that an untouched file is recognized, whatever version wrote it. */
export function templateOf(name: TemplateName): string {
  const body = bodies[name];
  return `<!-- gatehouse-template ${digestOf(body)} : change what follows; this line may stay -->\n${body}`;
}

export function isTemplateName(name: string): name is TemplateName {
  return templateNames.some((one) => one === name);
}

/** Whether a file is still an unchanged template. */
export function isUntouched(text: string): boolean {
  const marker = markerLine.exec(text);
  return marker !== null && digestOf(text.slice(marker[0].length)) === marker[1];
}

/** Returns the text that the model reads. */
export function withoutMarker(text: string): string {
  return text.replace(markerLine, '').trim();
}

/** Headings, empty list items, empty checkboxes and comments carry no content. */
export function saysNothing(text: string): boolean {
  return withoutComments(text)
    .split('\n')
    .every((line) => /^(?:|#{1,6}(?:\s.*)?|[-*+](?:\s\[[ xX]?\])?|\d{1,9}[.)])$/.test(line.trim()));
}

function withoutComments(text: string): string {
  let left = '';
  for (let at = 0; ;) {
    const begin = text.indexOf('<!--', at);
    const end = begin < 0 ? -1 : text.indexOf('-->', begin);
    if (end < 0) return left + text.slice(at);
    left += text.slice(at, begin);
    at = end + 3;
  }
}

const placeholder = /^(?:[[(<{_*].*[\])>}_*]|tbd|todo|name|your name|unknown|none|n\/?a|\?+|-+|\.+|\u2026)$/i;

/** Whether IDENTITY.md names the agent with something other than a placeholder. */
export function hasName(identity: string): boolean {
  for (const line of identity.split('\n')) {
    const value = /^(?:[-*+]\s)?\**name\**:\**(.*)$/i.exec(line.trim())?.[1]?.trim();
    if (value !== undefined && value !== '') return !placeholder.test(value);
  }
  return false;
}
