import { buildIn } from './patch.ts';

/** Leaves the pipes of a workspace in git's way. */
buildIn({
  name: 'pipes-for-git',
  module: 'features/environment/workspace/quota/quota.ts',
  replace: [{ from: 'clearForGit: (workspaceDir) => countNow(workspaceDir, true),', to: 'clearForGit: (workspaceDir) => countNow(workspaceDir),' }],
});
