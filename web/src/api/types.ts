// Short names for the shapes of the API.
import type { WorkflowRow } from './ahead';
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
export type AuditEntry = Schemas['AuditEntry'];
export type Definition = Schemas['Definition'];
export type WorkflowSummary = WorkflowRow;

/** A graph as core lays it out: boxes, lines and groups in one system of coordinates. */
export type GraphNode = {
  step: string;
  x: number;
  y: number;
  width: number;
  height: number;
  layer: number;
  group: string | null;
  kind: string;
  for_each: boolean;
};
export type GraphEdge = { from: number; to: number; points: [number, number][] };
export type GraphGroup = { name: string; x: number; y: number; width: number; height: number };
export type GraphLayout = {
  width: number;
  height: number;
  nodes: GraphNode[];
  edges: GraphEdge[];
  groups: GraphGroup[];
  critical_path: string[];
};

/** How a step of a graph is just now. */
export type StepState = {
  status: string;
  node?: string | null;
  attempt?: number;
  items?: { total: number; states: Record<string, number> } | null;
};
