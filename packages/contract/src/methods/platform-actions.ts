import * as z from 'zod';
import { type Method, method } from '../method.ts';
import { discordActions } from '../shared/actions/discord.ts';
import { emailActions } from '../shared/actions/email.ts';
import { ircActions } from '../shared/actions/irc.ts';
import { matrixActions } from '../shared/actions/matrix.ts';
import { slackActions } from '../shared/actions/slack.ts';
import { telegramActions } from '../shared/actions/telegram.ts';
import type { PlatformAction, PlatformActions } from '../shared/platform-action.ts';
import { ChannelEndpoint } from '../shared/session.ts';

/** The actions of each platform that has some: a platform is one import and one line here. */
export const actionsByPlatform = {
  discord: discordActions,
  email: emailActions,
  irc: ircActions,
  matrix: matrixActions,
  slack: slackActions,
  telegram: telegramActions,
} as const satisfies Readonly<Record<string, PlatformActions>>;

export type ActionPlatform = keyof typeof actionsByPlatform;

/** Returns the actions of a platform; none for an unknown one. */
export const actionsOf = (channelType: string): PlatformActions =>
  Object.hasOwn(actionsByPlatform, channelType) ? actionsByPlatform[channelType as ActionPlatform] : {};

export interface ActionParams {
  readonly action: string;
  readonly endpoint: z.output<typeof ChannelEndpoint>;
  readonly [name: string]: unknown;
}

/** Parameters of `<platform>.action`: all but `action` and `endpoint` are checked by the row of the action. */
const paramsOf = (actions: PlatformActions): z.ZodType<ActionParams, ActionParams> =>
  z
    .strictObject({
      action: z.enum(Object.keys(actions)).describe(`What to do, with its parameters: ${linesOf(actions).join('; ')}.`),
      endpoint: ChannelEndpoint.describe('A conversation with an agent, as for `message.send`.'),
      ...ownParamsOf(actions),
    })
    .check(({ value: { action, endpoint: _endpoint, ...own }, issues }) => {
      const checked = actions[action]?.params().safeParse(own);
      for (const issue of checked?.error?.issues ?? []) {
        const { path, message } = issue;
        if (issue.code === 'unrecognized_keys') issues.push({ code: issue.code, keys: issue.keys, path, message, input: own });
        else issues.push({ code: 'custom', path, message, input: own });
      }
    });

/** Returns the parameters that some action takes. */
function ownParamsOf(actions: PlatformActions): Record<string, z.ZodOptional<z.ZodUnknown>> {
  const takenBy = new Map<string, string[]>();
  for (const [name, { params }] of Object.entries(actions))
    for (const key of Object.keys(params().shape)) takenBy.set(key, [...(takenBy.get(key) ?? []), `\`${name}\``]);
  return Object.fromEntries(
    [...takenBy].map(([key, names]) => [
      key,
      z
        .unknown()
        .optional()
        .describe(`Of ${names.join(', ')}.`),
    ]),
  );
}

const linesOf = (actions: PlatformActions): string[] => Object.entries(actions).map(([name, action]) => lineOf(name, action));

function lineOf(name: string, { risk, summary, params }: PlatformAction): string {
  const keys = Object.entries(params().shape).map(([key, one]) => (one instanceof z.ZodOptional || one instanceof z.ZodDefault ? `${key}?` : key));
  return `\`${name}\`${keys.length === 0 ? '' : ` (${keys.join(', ')})`}: ${summary.replace(/\.$/, '')} [${risk}]`;
}

interface Example {
  readonly params: ActionParams;
  readonly result: Readonly<Record<string, unknown>>;
}

const actionMethod = (platform: ActionPlatform, example: Example) =>
  method({
    scope: 'admin',
    risk: 'destructive',
    summary: `Carries out an action that this platform has (${platform}).`,
    params: () => paramsOf(actionsByPlatform[platform]),
    // Each result is checked by the row of its action.
    result: () => z.looseObject({}),
    errors: ['not_found', 'precondition_failed', 'denied', 'unavailable', 'rate_limited'],
    examples: [example],
    since: '0.1.0',
  });

const placeIn = (channelType: string, conversationId: string, conversationKind: 'direct' | 'shared' = 'shared') => ({
  endpoint: { channelType, channelInstanceId: channelType, conversationId, conversationKind },
});

/** `<platform>.action` of each platform: one line for each, with an example. */
export const platformActions = {
  'discord.action': actionMethod('discord', {
    params: { action: 'pin', ...placeIn('discord', '1180000000000000001'), message_id: '1180000000000000002' },
    result: { pinned: true, channelId: '1180000000000000001', messageId: '1180000000000000002' },
  }),
  'email.action': actionMethod('email', {
    params: { action: 'mark_read', ...placeIn('email', 'ada@example.com', 'direct'), message_id: '<m1@example.com>' },
    result: { marked: true, message_id: '<m1@example.com>', read: true },
  }),
  'irc.action': actionMethod('irc', {
    params: { action: 'topic', ...placeIn('irc', '#lab'), topic: 'Release on Monday' },
    result: { topicSet: true, channel: '#lab' },
  }),
  'matrix.action': actionMethod('matrix', {
    params: { action: 'set_topic', ...placeIn('matrix', '!lab:example.com'), topic: 'Release on Monday' },
    result: { topicSet: true, roomId: '!lab:example.com' },
  }),
  'slack.action': actionMethod('slack', {
    params: { action: 'pin', ...placeIn('slack', 'C0123456789'), message_id: '1790000000.000100' },
    result: { pinned: true, channelId: 'C0123456789', messageId: '1790000000.000100' },
  }),
  'telegram.action': actionMethod('telegram', {
    params: { action: 'pin', ...placeIn('telegram', '-1001'), message_id: 7 },
    result: { pinned: true, chatId: '-1001', messageId: '7' },
  }),
} satisfies Readonly<Record<`${ActionPlatform}.action`, Method>>;
