import { presetNames, type PresetName, strictId, type WebhookMapping, type WebhooksConfig } from '../config.ts';
import { principalOf } from '../intake/identity.ts';
import { normalizePath } from './match.ts';
import type { ReadingRule } from '../intake/read-delivery.ts';
import type { SignaturePolicy } from '../intake/signature.ts';

const defaultHeader = 'x-webhook-signature';

/** One rule with all defaults put in. */
export interface Rule {
  readonly mapping: WebhookMapping;
  /** The same one for all rules that ask for the same. */
  readonly policy: SignaturePolicy;
  /** Who its turns belong to. */
  readonly principalId: string;
  readonly reading: ReadingRule;
  /** Whether reading a delivery looks at its headers. */
  readonly readsHeaders: boolean;
  /** Made of a preset of the configuration or for the strict route, not written as a mapping. */
  readonly isBuiltIn: boolean;
}

/**
 * The rules of a configuration in the order in which they are asked. Presets that are named alone stand before the first
 * mapping that takes every path, so that such a mapping does not take what is theirs, and behind a mapping of their path.
 */
export function rulesOf(config: WebhooksConfig): readonly Rule[] {
  const presets = presetNames.filter((name) => config.presets.includes(name)).map((preset) => presetMapping(preset, config));
  const catchAll = config.mappings.findIndex(({ match, preset }) => match.path === undefined && preset === undefined);
  const at = catchAll === -1 ? config.mappings.length : catchAll;
  const policies = new Map<string, SignaturePolicy>();
  const toRule = (mapping: WebhookMapping, isBuiltIn: boolean): Rule => {
    const path = mapping.match.path ?? (isBuiltIn ? undefined : mapping.preset);
    const match = path === undefined ? mapping.match : { ...mapping.match, path: normalizePath(path) };
    const own = policyOf(mapping, config);
    const policy = policies.get(JSON.stringify(own)) ?? own;
    policies.set(JSON.stringify(policy), policy);
    return ruleOf({ ...mapping, match }, policy, isBuiltIn);
  };
  return [
    ...config.mappings.slice(0, at).map((mapping) => toRule(mapping, false)),
    ...presets.map((mapping) => toRule(mapping, true)),
    ...config.mappings.slice(at).map((mapping) => toRule(mapping, false)),
  ];
}

/** What takes a delivery of the strict route that no mapping wants. */
export function strictRule(config: WebhooksConfig): Rule {
  const mapping = plainMapping(strictId, { path: strictId });
  return ruleOf(mapping, policyOf(mapping, config), true);
}

function ruleOf(mapping: WebhookMapping, policy: SignaturePolicy, isBuiltIn: boolean): Rule {
  const { id, match, preset, sessionKey, messageTemplate, dedupeKey } = mapping;
  return {
    mapping,
    policy,
    principalId: principalOf(id),
    reading: { id, match, preset, sessionKey, messageTemplate, dedupeKey },
    readsHeaders: preset === 'github' || [sessionKey, messageTemplate, dedupeKey].some((template) => template?.includes('headers')),
    isBuiltIn,
  };
}

function presetMapping(preset: PresetName, config: WebhooksConfig): WebhookMapping {
  const isTaken = config.mappings.some(({ id }) => id === preset);
  return { ...plainMapping(isTaken ? `${preset}-preset` : preset, { path: preset }), preset };
}

function plainMapping(id: string, match: WebhookMapping['match']): WebhookMapping {
  return { id, match, action: 'agent', replay: 'exact', allowUnauthenticated: false };
}

function policyOf(mapping: WebhookMapping, config: WebhooksConfig): SignaturePolicy {
  const secret = mapping.secret ?? config.token;
  if (secret === undefined) return { kind: 'none' };
  if (mapping.replay === 'signed') return { kind: 'standard', secret, maxAgeSec: config.maxAgeSec };
  const isGithub = mapping.preset === 'github';
  return {
    kind: 'hmac',
    secret,
    header:
      mapping.signatureHeader ??
      mapping.headerName ??
      (isGithub ? 'x-hub-signature-256' : (config.signatureHeader ?? config.headerName ?? defaultHeader)),
    algorithm: mapping.algorithm ?? (isGithub ? 'sha256' : config.algorithm),
    // GitHub sends no time.
    ...(!isGithub && {
      timestamp: {
        header: config.timestampHeader,
        maxAgeSec: config.maxAgeSec,
        isRequired: config.requireTimestamp || config.signedTimestamp,
        isSigned: config.signedTimestamp,
      },
    }),
  };
}

/** Whether anything is taken at all; the strict route then answers too. */
export function isEnabled({ enabled, token, presets, mappings }: WebhooksConfig): boolean {
  return enabled ?? (token !== undefined || presets.length > 0 || mappings.length > 0);
}
