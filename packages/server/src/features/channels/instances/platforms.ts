import type { ChannelCapabilities } from '@gatehouse/contract';
import type { Adapter, AdapterDeps, RatePlan, TextRules } from '../../../channels/port.ts';
import type { InstanceConfig } from './config.ts';

/** A platform without its wire, which is loaded when an instance is enabled. */
export interface OpenedPlatform {
  readonly capabilities: ChannelCapabilities;
  readonly rate: RatePlan;
  readonly adapter: Adapter;
}

export type OpenPlatform = (config: InstanceConfig, deps: Omit<AdapterDeps<unknown>, 'config'>) => Promise<OpenedPlatform>;

/** The built-in channel: clients of the gateway, and the inbox. */
export const gatewayCapabilities: ChannelCapabilities = {
  channelType: 'gateway',
  features: {
    reactions: false,
    editMessages: false,
    deleteMessages: false,
    fetchHistory: true,
    attachments: true,
    buttons: false,
    polls: false,
    voiceNotes: false,
    typing: false,
    mentions: false,
  },
  limits: { text: 32_768, textUnit: 'utf16', attachmentBytes: 26_214_400 },
  streaming: 'edits',
  threading: 'none',
  chatTypes: ['direct'],
  sendKey: 'transaction',
  actions: [],
};

const texts: Readonly<Record<InstanceConfig['type'], TextRules>> = { irc: { most: 380, unit: 'bytes', isLine: true, maxParts: 12 } };

/** Returns how texts of a platform are cut, also when its wire is not loaded. */
export const textRulesOf = (channelType: string): TextRules => texts[channelType as InstanceConfig['type']];

const loaders = { irc: async () => (await import('../../../channels/irc/irc.ts')).irc };

/** Returns what a platform offers; undefined for an unknown one. */
export async function capabilitiesOf(channelType: string): Promise<ChannelCapabilities | undefined> {
  if (channelType === 'gateway') return gatewayCapabilities;
  return Object.hasOwn(loaders, channelType) ? (await loaders[channelType as keyof typeof loaders]()).capabilities : undefined;
}

/** Loads the wire of an instance and opens it, without connecting. */
export const openPlatform: OpenPlatform = async (config, deps) => {
  const platform = await loaders[config.type]();
  const { sasl, ...rest } = config;
  const { capabilities, rate } = platform;
  const adapter = platform.open({ ...deps, config: { ...rest, ...(sasl !== undefined && { saslUser: sasl.user, saslPassword: sasl.password }) } });
  return { capabilities, rate, adapter };
};
