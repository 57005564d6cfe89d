// Short names for the shapes of the API.
import type { components } from './schema';

type Schemas = components['schemas'];

export type Run = Schemas['Run'];
export type RunSummary = Schemas['RunSummary'];
export type Task = Schemas['Task'];
export type Attempt = Schemas['Attempt'];
export type Cause = Schemas['Cause'];
export type Node = Schemas['Node'];
export type Pool = Schemas['Pool'];
export type Limit = Schemas['Limit'];
export type Trigger = Schemas['Trigger'];
export type Token = Schemas['Token'];
export type RotatedToken = Schemas['RotatedToken'];
export type AuditEntry = Schemas['AuditEntry'];
export type Definition = Schemas['Definition'];
export type WorkflowSummary = Schemas['WorkflowSummary'];
export type Outcome = Schemas['Outcome'];
export type Param = Schemas['Param'];
export type Overview = Schemas['Overview'];
export type Validated = Schemas['Validated'];
export type Fault = Schemas['Fault'];
export type Lock = Schemas['Lock'];
export type OrderLine = Schemas['OrderLine'];
export type TaskContainer = Schemas['TaskContainer'];
/** A task that holds something, or waits for it. */
export type Hold = Schemas['InLine'];

/** A graph as core lays it out: boxes, lines and groups in one system of coordinates. */
export type GraphLayout = Schemas['Graph'];
export type GraphNode = Schemas['GraphNode'];
export type GraphEdge = Schemas['GraphEdge'];
export type GraphGroup = Schemas['GraphGroup'];

/** How a step of a graph is just now. */
export type StepState = {
  status: string;
  node?: string | null;
  attempt?: number;
  items?: { total: number; states: Record<string, number> } | null;
};
