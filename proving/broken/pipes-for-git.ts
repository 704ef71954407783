import { buildIn } from './patch.ts';

/** Pipes of a workspace stay in git's way. */
buildIn({
  name: 'pipes-for-git',
  module: 'features/environment/workspace/quota/quota.ts',
  replace: [{ from: 'clearForGit: (workspaceDir) => countNow(workspaceDir, true),', to: 'clearForGit: (workspaceDir) => countNow(workspaceDir),' }],
});
