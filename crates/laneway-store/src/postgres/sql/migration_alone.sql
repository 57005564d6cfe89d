-- Nobody registers or renews until a migration that older programs cannot go on with is over, or given up.
LOCK TABLE sessions IN EXCLUSIVE MODE;
