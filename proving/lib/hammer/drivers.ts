import { accessDrivers } from './access.ts';
import { authorizationDrivers } from './authorizations.ts';
import { channelDrivers } from './channels.ts';
import { configDrivers } from './config.ts';
import { delegationDrivers } from './delegation.ts';
import type { Driver } from './driver.ts';
import { knowledgeDrivers } from './knowledge.ts';
import { nodeDrivers } from './nodes.ts';
import { observationDrivers } from './observation.ts';
import { scheduleDrivers } from './schedule.ts';
import { secretDrivers } from './secrets.ts';
import { turnDrivers } from './turns.ts';
import { workDrivers } from './work.ts';

/** All drivers, in a fixed order: both processes name one by its place. */
export const drivers: readonly Driver[] = [
  ...workDrivers,
  ...channelDrivers,
  ...turnDrivers,
  ...delegationDrivers,
  ...scheduleDrivers,
  ...accessDrivers,
  ...secretDrivers,
  ...knowledgeDrivers,
  ...nodeDrivers,
  ...configDrivers,
  ...authorizationDrivers,
  ...observationDrivers,
];
