// A GEMM by block tiles in shared memory, TM x TN elements of C a thread, as tutorials have it. M, N and K are multiples of
// the tile. Timed on an H200: tests/records/h200_block_tiles.json, with LOG = 0; log and sm are used with LOG = 1, for the
// clock before the loads, behind the first barrier and behind the work of each warp and step.
template <int BM,int BN,int BK,int TM,int TN,int LOG> __global__ void __launch_bounds__(BM*BN/TM/TN) tile2d(const float* A,const float* B,float* C,int M,int N,int K,unsigned* log,unsigned* sm){
  __shared__ float As[BM*BK], Bs[BK*BN]; extern __shared__ char room[];
  constexpr int T=BM*BN/TM/TN; int t=threadIdx.x; int tc=t%(BN/TN), tr=t/(BN/TN);
  A+=(size_t)blockIdx.y*BM*K; B+=blockIdx.x*BN;
  float acc[TM][TN]={}; int steps=K/BK; int blk=blockIdx.y*gridDim.x+blockIdx.x;
  unsigned* my = log + ((size_t)blk*(T/32)+t/32)*steps*3;
  for(int s=0;s<steps;s++){
    unsigned t0=0,t1=0,t2=0; if(LOG) t0=clock();
#pragma unroll
    for(int i=0;i<BM*BK;i+=T) As[i+t]=A[((i+t)/BK)*K+(i+t)%BK];
#pragma unroll
    for(int i=0;i<BK*BN;i+=T) Bs[i+t]=B[((i+t)/BN)*N+(i+t)%BN];
    __syncthreads(); if(LOG) t1=clock();
    A+=BK; B+=BK*N;
#pragma unroll
    for(int k=0;k<BK;k++){ float a[TM],b[TN];
#pragma unroll
      for(int i=0;i<TM;i++) a[i]=As[(tr*TM+i)*BK+k];
#pragma unroll
      for(int j=0;j<TN;j++) b[j]=Bs[k*BN+tc*TN+j];
#pragma unroll
      for(int i=0;i<TM;i++)
#pragma unroll
        for(int j=0;j<TN;j++) acc[i][j]+=a[i]*b[j]; }
    if(LOG) t2=clock()+(acc[0][0]==12345.f);
    __syncthreads();
    if(LOG&&t%32==0){my[s*3]=t0;my[s*3+1]=t1;my[s*3+2]=t2;}
  }
  for(int i=0;i<TM;i++) for(int j=0;j<TN;j++) C[(size_t)(blockIdx.y*BM+tr*TM+i)*N+blockIdx.x*BN+tc*TN+j]=acc[i][j]+(K<0?room[0]:0);
  if(t==0){unsigned s; asm volatile("mov.u32 %0, %%smid;":"=r"(s)); sm[blk]=s;}
}
