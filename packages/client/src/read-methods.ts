// Made by tools/gen.ts from the contract.
import type { MethodName } from '@gatehouse/contract';

/** Methods of risk `read`: calling one twice changes nothing. */
export const readMethods: ReadonlySet<string> = new Set<MethodName>([
  'agent.cacheStats',
  'agent.getOperationModels',
  'agents.get',
  'agents.list',
  'capabilities.introspect',
  'config.read',
  'config.schema',
  'context.conversations',
  'context.tree',
  'gateway.status',
  'memory.browse',
  'memory.embeddingCache',
  'memory.export',
  'memory.inspect',
  'memory.search',
  'memory.stats',
  'models.list',
  'models.list_providers',
  'models.test',
  'rpc.discover',
  'session.export',
  'session.history',
  'session.list',
  'session.search',
  'session.status',
  'system.ping',
  'tokens.list',
  'usage.report',
]);
