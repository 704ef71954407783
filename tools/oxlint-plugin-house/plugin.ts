import { rules } from './rules.ts';

// The linter takes the default export of a plugin.
export default { meta: { name: 'house' }, rules };
