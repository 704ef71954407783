import { isUtf8 } from 'node:buffer';
import { parseJson } from '../../../../kernel/json.ts';
import type { PresetName } from '../config.ts';
import { valueAt } from './template.ts';

/** A delivery as read by a preset; the mapping's own templates take precedence over its text. */
export interface PresetReading {
  /** The payload as seen by templates. */
  readonly payload: unknown;
  /** Default conversation key. */
  readonly sessionKey: string;
  /** Id of the delivery; undefined when the sender set none. */
  readonly deliveryId: string | undefined;
  readonly message: string;
  /** Whether the delivery is answered without a turn. */
  readonly isPing: boolean;
}

/** Body limit of the github preset, the maximum sent by GitHub. */
export const githubBodyBytes = 26_214_400;
/** Maximum length of one line of a default message. */
const maxLine = 8_000;

type Line = readonly [label: string, ...paths: readonly string[]];

/** Lines that describe a GitHub event, each with its payload paths; the first existing path is used. */
const githubLines: readonly Line[] = [
  ['Action', 'action'],
  ['Repository', 'repository.full_name'],
  ['Organization', 'organization.login'],
  ['Sender', 'sender.login'],
  ['Ref', 'ref'],
  ['Number', 'number', 'issue.number', 'pull_request.number', 'discussion.number'],
  [
    'Title',
    'pull_request.title',
    'issue.title',
    'discussion.title',
    'release.name',
    'check_run.name',
    'workflow_run.name',
    'alert.rule.description',
    'security_advisory.summary',
    'milestone.title',
    'label.name',
    'head_commit.message',
  ],
  [
    'State',
    'state',
    'check_run.conclusion',
    'check_suite.conclusion',
    'workflow_run.conclusion',
    'deployment_status.state',
    'pull_request.state',
    'issue.state',
  ],
  [
    'Address',
    'comment.html_url',
    'review.html_url',
    'pull_request.html_url',
    'issue.html_url',
    'discussion.html_url',
    'release.html_url',
    'check_run.html_url',
    'workflow_run.html_url',
    'alert.html_url',
    'compare',
    'forkee.html_url',
    'target_url',
    'repository.html_url',
  ],
  [
    'Text',
    'comment.body',
    'review.body',
    'pull_request.body',
    'issue.body',
    'discussion.body',
    'release.body',
    'security_advisory.description',
    'description',
  ],
];

const mailLines: readonly Line[] = [
  ['From', 'messages.0.from'],
  ['Subject', 'messages.0.subject'],
  ['Snippet', 'messages.0.snippet'],
  ['Body', 'messages.0.body'],
  ['Mailbox', 'notification.emailAddress'],
  ['History id', 'notification.historyId'],
];

export function readPreset(preset: PresetName, payload: unknown, headers: Readonly<Record<string, string>>): PresetReading {
  return preset === 'github' ? readGithub(payload, headers) : readMail(payload);
}

function readGithub(payload: unknown, headers: Readonly<Record<string, string>>): PresetReading {
  const event = headers['x-github-event'] ?? '';
  const deliveryId = textOf(headers['x-github-delivery']);
  return {
    payload,
    sessionKey: `hook:github:${deliveryId ?? ''}`,
    deliveryId,
    message: [`GitHub event: ${event}`, ...linesOf(payload, githubLines)].join('\n'),
    isPing: event === 'ping',
  };
}

/** Reads either the mails themselves (`messages`), or a push service envelope, which only announces new mail. */
function readMail(raw: unknown): PresetReading {
  const data = valueAt(raw, ['message', 'data']);
  const isEnvelope = typeof data === 'string';
  const payload = isEnvelope && typeof raw === 'object' ? { ...raw, notification: decodeData(data) } : raw;
  const deliveryId = textOf(valueAt(raw, isEnvelope ? ['message', 'messageId'] : ['messages', '0', 'id']));
  return {
    payload,
    sessionKey: `hook:gmail:${deliveryId ?? ''}`,
    deliveryId,
    message: [isEnvelope ? 'The mailbox has changed.' : 'New mail:', ...linesOf(payload, mailLines)].join('\n'),
    isPing: false,
  };
}

/** Returns the JSON inside the envelope, or the raw data when it is not JSON. */
function decodeData(data: string): unknown {
  const bytes = Buffer.from(data, 'base64');
  if (!isUtf8(bytes)) return data;
  try {
    return parseJson(bytes.toString('utf8'));
  } catch {
    return data;
  }
}

function linesOf(payload: unknown, lines: readonly Line[]): string[] {
  return lines.flatMap(([label, ...paths]) => {
    for (const path of paths) {
      const text = textOf(valueAt(payload, path.split('.')));
      if (text !== undefined) return [`${label}: ${text.slice(0, maxLine)}`];
    }
    return [];
  });
}

function textOf(value: unknown): string | undefined {
  if (typeof value === 'number') return String(value);
  return typeof value === 'string' && value !== '' ? value : undefined;
}
