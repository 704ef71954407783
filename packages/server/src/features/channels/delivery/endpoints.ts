import { isDeepStrictEqual } from 'node:util';
import { AppError } from '../../../kernel/app-error.ts';
import { type CallContext, isAdmin, ownerOf } from '../../../kernel/call-context.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { Platform } from '../../../channels/port.ts';
import type { DeliveryApi, Destination, EndpointsApi } from './api.ts';
import { readKnownEndpoint } from './endpoint-store.ts';

export interface EndpointsDeps {
  readonly db: Db;
  readonly platformOf: (channelType: string) => Platform | undefined;
  /** Types of the configured channels by name, also of disabled ones: what is sent to those waits. */
  readonly types: () => ReadonlyMap<string, string>;
  readonly delivery: Pick<DeliveryApi, 'partsOf'>;
}

/** Checks and addresses chats as destinations. An endpoint is checked when it is chosen, and again when something is delivered to it. */
export function createEndpoints({ db, platformOf, types, delivery }: EndpointsDeps): EndpointsApi {
  function checkChannel({ channelType, instance, threadId, conversationKind }: Destination, at: string): void {
    if (![...types().values()].includes(channelType)) throw invalid(`${at}.channelType`, `no channel has the type "${channelType}"`);
    const type = types().get(instance);
    if (type === undefined) throw invalid(`${at}.channelInstanceId`, `no channel has the name "${instance}"`);
    if (type !== channelType) throw invalid(`${at}.channelType`, `the channel "${instance}" is of type "${type}"`);
    const offered = platformOf(channelType)?.capabilities;
    if (threadId !== null && offered?.threading === 'none') throw invalid(`${at}.threadId`, `${channelType} has no threads`);
    if (conversationKind === 'shared' && offered?.chatTypes.every((chat) => chat === 'direct') === true)
      throw invalid(`${at}.conversationKind`, `${channelType} has only direct conversations`);
  }

  async function checkReach(to: Destination, call: CallContext, at: string): Promise<void> {
    const { agentCaller } = call;
    if (agentCaller !== undefined) {
      if (isDeepStrictEqual(agentCaller.turn?.endpoint, to)) return;
      throw new AppError('denied', `${at}: agents deliver only to the chat that their turn belongs to`, { param: at });
    }
    const known = await db.read(readKnownEndpoint, { instance: to.instance, conversationId: to.conversationId, principalId: ownerOf(call) });
    if (known.kind !== null && known.kind !== to.conversationKind) throw invalid(`${at}.conversationKind`, `expected "${known.kind}"`);
    // Answers the same whether or not others write there.
    if (!isAdmin(call) && !known.isOwn) throw new AppError('not_found', 'Conversation not found', { param: `${at}.conversationId` });
  }

  return {
    async check({ channelInstanceId: instance, channelType, conversationId, threadId = null, conversationKind }, call, at) {
      const to: Destination = { instance, channelType, conversationId, threadId, conversationKind };
      checkChannel(to, at);
      await checkReach(to, call, at);
      return to;
    },
    async named(channelType, channelId, call, at) {
      const names = [...types()].flatMap(([name, type]) => (type === channelType ? [name] : []));
      const [only] = names;
      if (only === undefined) throw invalid(`${at}Type`, `no channel has the type "${channelType}"`);
      const instance = names.find((name) => channelId.startsWith(`${name}/`));
      if (instance === undefined && names.length > 1) throw invalid(`${at}Id`, `expected ${names.map((name) => `"${name}/ID"`).join(' or ')}`);
      const conversationId = instance === undefined ? channelId : channelId.slice(instance.length + 1);
      if (conversationId === '') throw invalid(`${at}Id`, 'expected the id of a conversation');
      const name = instance ?? only;
      const { kind } = await db.read(readKnownEndpoint, { instance: name, conversationId, principalId: ownerOf(call) });
      // In a conversation that nobody wrote in yet, nobody but owners decides.
      const to: Destination = { instance: name, channelType, conversationId, threadId: null, conversationKind: kind ?? 'shared' };
      await checkReach(to, call, `${at}Id`);
      return to;
    },
    address(message, to, { lifeMs, buttons } = {}) {
      const { opKey, text, agentId, principalId, conversationRef } = message;
      if (types().get(to.instance) === to.channelType) {
        const unsolicited = buttons === undefined ? 'report' : 'question';
        return {
          ...message,
          parts: delivery.partsOf({ opKey, to, text, lifeMs, buttons, unsolicited, agentId, principalId, conversationRef, turnId: null }),
        };
      }
      const why = `(This could not be delivered to ${to.conversationId}: the channel "${to.instance}" (${to.channelType}) is not configured any more.)`;
      return { ...message, level: 'alert', text: `${text}\n\n${why}` };
    },
  };
}

function invalid(param: string, message: string): AppError {
  return new AppError('invalid_params', `${param}: ${message}`, { param, issues: [{ path: param, message }] });
}
